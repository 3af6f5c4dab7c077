import { z } from 'zod';
import { CHECK_NAMES, CHECKS, check, VERDICTS } from '../../edge/verification/contract.ts';
import { containerView } from '../containers/containers.schema.ts';

const checkView = z
  .object({
    name: z
      .enum(CHECK_NAMES)
      .meta({ description: CHECK_NAMES.map((name) => `\`${name}\`: ${CHECKS[name]}`).join('; ') }),
    subject: z.string().nullable().meta({ description: 'the host or domain it is about; null: the site' }),
    status: z.enum(check.shape.status.options),
    detail: z.string(),
    fix: z.string().nullable().meta({ description: 'what to do; null: nothing' }),
  })
  .meta({ id: 'VerificationCheck' });

const verificationView = z
  .object({
    status: z.enum(VERDICTS).meta({ description: '`unreachable`: nothing of the site answered at all' }),
    checkedAt: z.iso.datetime(),
    checks: z.array(checkView),
  })
  .meta({ id: 'Verification' });

export const verifiedContainer = z.object({ container: containerView, verification: verificationView });
export const verificationList = z.object({ verifications: z.array(verificationView) });
