// Runs before the snippet, as a consent platform does. It sends the saved choice to Consent Mode, and records which
// scripts arrive and which fail: `window.shop` is what the panel reads.
(() => {
  const scripts = [];
  for (const type of ['load', 'error']) {
    document.addEventListener(
      type,
      ({ target }) => {
        if (target instanceof HTMLScriptElement && target.src !== '')
          scripts.push({ url: target.src, isLoaded: type === 'load' });
      },
      true,
    );
  }
  window.dataLayer = window.dataLayer ?? [];
  function gtag() {
    // biome-ignore lint/complexity/noArguments: Google's tags accept commands only as `arguments`.
    window.dataLayer.push(arguments);
  }
  const say = (choice) =>
    gtag('consent', 'update', {
      analytics_storage: choice,
      ad_storage: choice,
      ad_user_data: choice,
      ad_personalization: choice,
    });
  const kept = () => /(?:^|; )shop_consent=(granted|denied)(?:;|$)/.exec(document.cookie)?.[1];
  const known = kept();
  if (known !== undefined) say(known);
  window.shop = { scripts, choice: kept, choose: say };
})();
