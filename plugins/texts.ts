/** The texts that a form shows of a plugin. They are apart from the schema, so that the worker's bundle omits them. */
export interface PluginTexts {
  readonly title: string;
  readonly description: string;
  /** Title and description of each option. */
  readonly options: Readonly<Record<string, readonly [title: string, description: string]>>;
}
