/** SQLSTATEs of values that a type can’t hold. Source: PostgreSQL, Appendix A. PostgreSQL Error Codes. */
const REFUSED = [
  '22007', // invalid_datetime_format
  '22008', // datetime_field_overflow
  '22021', // character_not_in_repertoire, such as NUL
  '22P02', // invalid_text_representation
  '22P05', // untranslatable_character
];

/** Whether the database refused a value that it was given, such as a text with a NUL or a day that doesn’t exist. */
export function isRefusedValue(error: unknown): boolean {
  return error instanceof Error && 'code' in error && REFUSED.includes(String(error.code));
}
