/** A script for the visitor's browser, compiled to text by `edge/bundle.ts`. */
declare module '*?page' {
  const source: string;
  export default source;
}
