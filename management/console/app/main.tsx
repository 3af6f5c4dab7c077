import { render } from 'preact';
import { readSession } from './data/session.ts';
import { App } from './shell/app.tsx';
import { followTheme } from './shell/theme.ts';

followTheme();
void readSession();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
