/** What a form shows of a plugin. Apart from its schema, so that the worker's bundle has none of it. */
export interface PluginTexts {
  readonly title: string;
  readonly description: string;
  /** Title and description of each option. */
  readonly options: Readonly<Record<string, readonly [title: string, description: string]>>;
}
