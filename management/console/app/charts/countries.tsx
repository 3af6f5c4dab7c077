import { sumsOf, type Traffic } from '../data/traffic.ts';
import { count } from '../text/format.ts';

const SHOWN = 8;
const NAMES = new Intl.DisplayNames('en', { type: 'region' });

function nameOf(code: string): string {
  try {
    return NAMES.of(code) ?? code;
  } catch {
    // Cloudflare also has codes of its own, such as T1 for Tor.
    return code === 'T1' ? 'Tor' : code;
  }
}

/** Requests by the visitor’s country, with bars in the table itself. */
export function CountryTable({ traffic }: { traffic: Traffic }) {
  const sums = sumsOf(traffic, 'countries');
  const total = sums.reduce((sum, [, number]) => sum + number, 0);
  const [[, most] = ['', 1]] = sums;
  const rest = sums.slice(SHOWN);
  const rows = [
    ...sums.slice(0, SHOWN).map(([code, number]) => ({ name: nameOf(code), number })),
    ...(rest.length === 0
      ? []
      : [
          {
            name: rest.length === 1 ? '1 other' : `${rest.length} others`,
            number: rest.reduce((sum, [, number]) => sum + number, 0),
          },
        ]),
  ];
  return (
    <figure class="chart-box">
      <figcaption>
        <h3>Requests by country</h3>
      </figcaption>
      {rows.length === 0 ? (
        <p class="dim">No request with a known country.</p>
      ) : (
        <table class="countries">
          <thead class="hidden">
            <tr>
              <th scope="col">Country</th>
              <th scope="col">Requests</th>
              <th scope="col">Percentage</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, number }) => (
              <tr key={name}>
                <th scope="row">
                  <span class="amount" style={{ width: `${Math.min(100, (number / most) * 100)}%` }} />
                  <span>{name}</span>
                </th>
                <td class="right">{count(number)}</td>
                <td class="right dim">{((number / total) * 100).toFixed(1)} %</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </figure>
  );
}
