// npm run generate:api
export const KEYED_OPERATIONS = [
  'POST /server-containers',
  'POST /server-containers/{id}/clone',
] as const;
