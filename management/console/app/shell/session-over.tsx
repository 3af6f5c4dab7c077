import { useEffect, useRef } from 'preact/hooks';
import { continueRequests, isSessionOver } from '../data/api.ts';
import { loginUrl, me } from '../data/session.ts';

const CHANNEL = 'tagyard-login';
/** The page at which a login in a second window ends. */
const RETURNED_PATH = '/console/logged-in';

/** Asks for a new login in a second window: the page with what was typed stays as it is. */
export function SessionOver() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isSessionOver.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isSessionOver.value]);
  useEffect(() => {
    const channel = new BroadcastChannel(CHANNEL);
    channel.onmessage = ({ data }: MessageEvent<string>) => {
      // Another person's login must not send this person's changes.
      if (data === me().subject) continueRequests();
      else location.reload();
    };
    return () => channel.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby="session-over"
      onCancel={(event) => event.preventDefault()}
      onClose={() => {
        // Browsers close it at a second Escape nevertheless.
        if (isSessionOver.value) dialog.current?.showModal();
      }}
    >
      <h2 id="session-over">Your session has ended</h2>
      <p>
        Log in again in a new window. What you typed is still here, and a change you were saving will be sent.
      </p>
      <div class="actions">
        <a class="button primary" href={loginUrl(RETURNED_PATH)} target="_blank" rel="noopener opener">
          Log in again
        </a>
      </div>
    </dialog>
  );
}

/** Reports this login to the window that waits for it, and closes this one. */
export function Returned() {
  useEffect(() => {
    const channel = new BroadcastChannel(CHANNEL);
    channel.postMessage(me().subject);
    channel.close();
    window.close();
  }, []);
  return <p class="login">You are logged in. Close this window, and go on in the other one.</p>;
}
