/** A script for the visitor's browser, as the text that `edge/bundle.ts` compiles it to. */
declare module '*?page' {
  const source: string;
  export default source;
}
