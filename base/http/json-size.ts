/** Deeper than any body of the APIs. */
const DEEPEST = 32;
/** Members and list entries; a list of ids that fills a body has fewer. */
const MOST_VALUES = 4_000;

/**
 * What is wrong with the size of a JSON text; `null`: nothing. Counted before the text is parsed and validated, because
 * thousands of unknown keys would take longer than anything that an honest body of the same length does.
 */
export function jsonExcess(text: string): string | null {
  let depth = 0;
  let values = 0;
  let isInString = false;
  for (let index = 0; index < text.length; index += 1) {
    const char = text[index];
    if (isInString) {
      if (char === '\\') index += 1;
      else if (char === '"') isInString = false;
    } else if (char === '"') isInString = true;
    else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    else if (char === ',') values += 1;
    if (depth > DEEPEST) return `the body is nested deeper than ${DEEPEST} levels`;
    if (values > MOST_VALUES) return `the body has more than ${MOST_VALUES} values`;
  }
  return null;
}
