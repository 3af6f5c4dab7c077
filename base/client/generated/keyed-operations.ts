// npm run generate:api
export const KEYED_OPERATIONS = [
  'POST /bulk',
  'POST /clients',
  'POST /clients/{id}/invitations',
  'POST /organisations',
  'POST /organisations/{id}/invitations',
  'POST /server-containers',
  'POST /server-containers/{id}/clone',
  'POST /tokens',
  'POST /webhooks',
] as const;
