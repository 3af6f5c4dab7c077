/** The settings of tests and benches, which no part of the product reads, with their meaning. */
export const TEST_SETTINGS: Readonly<Record<string, string>> = {
  TAGYARD_REQUIRE_ALL:
    '1: a missing component (nginx, Docker, …) fails the run instead of skipping its suites.',
  TAGYARD_SECOND_TRY:
    '`npm test`: 1 runs the files that failed, if they are at most eight, once more at the end. The report names those that pass then.',
  TAGYARD_FUZZ_SEED:
    'The seed of the fuzzed minute of each test run (docs/fuzzing.md). Unset: a new one for each run, which prints it.',
  CONFORM_CONTAINER_CONFIG:
    '`npm run conform -- --image` (docs/conformance.md): a CONTAINER_CONFIG that Google knows. `--cloudflare` uses CLOUDFLARE_API_TOKEN and CLOUDFLARE_ZONE_ID. `npm run conform` reads no .env file.',
  CONFORM_WEB_TAG_ID: '`npm run conform -- --google`: the id of a published web container.',
  CHROMIUM_PATH: 'The browser of the tests. Unset: `/usr/bin/chromium`.',
  BLOCK_LISTS:
    "The folder with easylist.txt and easyprivacy.txt that tests compare names with. Unset: that of Debian's webext-ublock-origin-firefox.",
  PLACE_DATABASE:
    'The database of countries that tests of nginx use. Unset: the one that test/setup-debian.sh has cached in `~/.cache/tagyard`.',
  BENCH_TRAFFIC_RECORDS:
    'The size of the backlog that `npm run bench -- traffic` collects. Unset: 1,850,000 records, 1 GB.',
  BENCH_TRAFFIC_SITES: 'The number of its containers. Unset: 1,000.',
  BENCH_KUBERNETES_SITES: 'The sites of `npm run bench -- kubernetes`. Unset: 200.',
  BENCH_KUBERNETES_ONCE: '1: that bench measures each of its two variants once (A B), not twice (A B B A).',
  BENCH_GATEWAY_SECONDS:
    '`npm run bench -- gateway`: for how many seconds the API server is stopped, and for how many the kubelets are cut off from it. Unset: 120.',
  BENCH_GATEWAY_ROWS: 'The rows of that bench to run, by a part of their names. Unset: all.',
  BENCH_JSON: 'The file for the figures of `npm run bench`, as JSON.',
  BENCH_RECORDS: 'The number of records of the bench `requests`. Unset: five million.',
};
