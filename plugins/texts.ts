/** What a form shows of a plugin. It is apart from the schema, so that the worker's bundle omits it. */
export interface PluginTexts {
  readonly title: string;
  readonly description: string;
  /** Title and description of each option. */
  readonly options: Readonly<Record<string, readonly [title: string, description: string]>>;
}
