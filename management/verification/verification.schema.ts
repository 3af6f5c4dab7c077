import { z } from 'zod';
import { CHECK_NAMES, CHECKS, check, VERDICTS } from '../../edge/verification/contract.ts';
import { containerView } from '../view/container-view.ts';

const checkView = z
  .object({
    name: z
      .enum(CHECK_NAMES)
      .meta({ description: CHECK_NAMES.map((name) => `\`${name}\`: ${CHECKS[name]}`).join('; ') }),
    subject: z.string().nullable().meta({ description: 'the checked host or domain; null: the whole site' }),
    status: z.enum(check.shape.status.options),
    detail: z.string(),
    fix: z.string().nullable().meta({ description: 'how to fix it; null: nothing to do' }),
  })
  .meta({ id: 'VerificationCheck' });

const verificationView = z
  .object({
    status: z.enum(VERDICTS).meta({ description: '`unreachable`: the site gave no answer, or only 5xx' }),
    checkedAt: z.iso.datetime(),
    checks: z.array(checkView),
  })
  .meta({ id: 'Verification' });

export const verifiedContainer = z.object({ container: containerView, verification: verificationView });
export const verificationList = z.object({ verifications: z.array(verificationView) });
