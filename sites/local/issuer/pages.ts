import Handlebars from 'handlebars';

/** No script runs, and nothing is loaded. No `form-action`: a login ends in a redirect to the client's origin. */
export const PAGE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

export interface Account {
  /** The `sub` of its tokens. */
  readonly subject: string;
  readonly name: string;
  readonly description: string;
}

const page = Handlebars.compile(
  `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{title}}</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
main { max-width: 24rem; margin: 15vh auto; padding: 0 1rem }
button { display: block; width: 100%; margin: .5rem 0; padding: .75rem 1rem; font: inherit; text-align: left; cursor: pointer }
small { display: block; opacity: .75 }
</style>
</head>
<body>
<main>
<h1>{{title}}</h1>
{{#if text}}<p>{{text}}</p>{{/if}}
{{#if accounts}}<form method="post">
{{#each accounts}}<button name="account" value="{{subject}}">{{name}}<small>{{description}}</small></button>
{{/each}}</form>{{/if}}
{{{form}}}
{{#if form}}<button type="submit" form="op.logoutForm" value="yes" name="logout" autofocus>Log out</button>{{/if}}
</main>
</body>
</html>
`,
  { strict: false },
);

/** One button for each account. */
export function loginPage(accounts: readonly Account[]): string {
  return page({
    title: 'Log in to Tagyard',
    text: 'This is the demo’s login: it has no passwords.',
    accounts,
  });
}

/** `form`: HTML of the provider's own, without a button. */
export function logoutPage(form: string): string {
  return page({ title: 'Log out of Tagyard?', form });
}

export function messagePage(title: string, text: string): string {
  return page({ title, text });
}
