import { z } from 'zod';
import {
  approvalSchema,
  healthSchema,
  planReportSchema,
  shownSiteSchema,
  sitesAnswerSchema,
} from '../../report/report.ts';
import { runSchema } from './run-schema.ts';

const commit = z.object({ revision: z.string(), at: z.string(), author: z.string(), subject: z.string() });

/** The answers that `readAnswer` reads by their shapes, which `npm run generate:shapes` writes to `shapes.json`. */
export const ANSWER_SCHEMAS = {
  /** `run.json` */
  run: runSchema,
  /** `GET /sites` */
  sites: sitesAnswerSchema,
  /** `GET /sites/:site` */
  site: shownSiteSchema,
  /** The history in `GET /sites/:site` */
  history: z.object({ history: z.array(commit) }),
  /** `POST /approve` */
  approval: approvalSchema,
  /** `POST /plan` */
  plan: planReportSchema,
  /** `GET /health` */
  health: healthSchema,
};

export type Answers = {
  readonly [Name in keyof typeof ANSWER_SCHEMAS]: z.output<(typeof ANSWER_SCHEMAS)[Name]>;
};
