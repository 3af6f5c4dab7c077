import type { paths } from './generated/management-api.d.ts';

/** What an answer is without `dryRun`: anything but a plan. */
export type WithoutPlan<Answer> = Exclude<Answer, { readonly plan: unknown }>;

interface PlanResponse {
  content: { 'application/json': { plan: unknown } };
}

type CommittedResponse<Response> = Response extends { content: { 'application/json': infer Body } }
  ? Omit<Response, 'content'> & { content: { 'application/json': WithoutPlan<Body> } }
  : Response;

type CommittedOperation<Operation> = Operation extends { responses: infer Responses }
  ? Omit<Operation, 'responses'> & {
      // A status that answers nothing but a plan is left out.
      responses: {
        [Status in keyof Responses as Responses[Status] extends PlanResponse
          ? never
          : Status]: CommittedResponse<Responses[Status]>;
      };
    }
  : Operation;

/** The API's paths for callers that never ask for a dry run: no answer is a plan. */
export type CommittedPaths = {
  [Path in keyof paths]: {
    [Member in keyof paths[Path]]: CommittedOperation<paths[Path][Member]>;
  };
};
