import { useLocation, useRoute } from 'preact-iso';
import { requestFilterOf, requestTimesOf } from '../../data/requests.ts';
import { ContainerName, ContainerPicker } from '../../parts/container-picker.tsx';
import { ContainerTabs } from '../../parts/container-tabs.tsx';
import { Page } from '../../parts/page.tsx';
import { Empty } from '../../parts/states.tsx';
import { timeZone } from '../../text/format.ts';
import { type ChangeAddress, RequestFilterBar } from './filters.tsx';
import { LiveView } from './live.tsx';
import { SearchView } from './search.tsx';

/** The requests at the edge, of all containers or of one: searched, or followed as they arrive. */
export default function RequestsScreen() {
  const { query, path, route } = useLocation();
  const { id } = useRoute().params;
  const filter = { ...requestFilterOf(query), ...(id === undefined ? {} : { container: id }) };
  const { container } = filter;
  const isLive = query.view === 'live';
  const times = requestTimesOf(query);
  const change: ChangeAddress = (changes, replace = false) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    const text = next.toString();
    route(`${path}${text === '' ? '' : `?${text}`}`, replace);
  };
  return (
    <Page
      title="Requests"
      sub={
        <>
          {id !== undefined && (
            <span>
              of{' '}
              <a href={`/console/containers/${id}`}>
                <ContainerName id={id} />
              </a>
            </span>
          )}
          {id !== undefined && <a href={`/console/containers/${id}/output`}>Output of the tag servers</a>}
          <span>
            {id === undefined && 'What the edge has answered. '}Times are those of {timeZone()}.
          </span>
        </>
      }
      actions={
        <fieldset class="segments">
          <legend class="hidden">View</legend>
          <button type="button" aria-pressed={!isLive} onClick={() => change({ view: undefined })}>
            Search
          </button>
          <button type="button" aria-pressed={isLive} onClick={() => change({ view: 'live' })}>
            Live
          </button>
        </fieldset>
      }
    >
      {id !== undefined && (
        <div class="stuck">
          <ContainerTabs id={id} current="requests" />
        </div>
      )}
      <RequestFilterBar
        filter={filter}
        times={isLive ? null : times}
        isOfOne={id !== undefined}
        change={change}
      />
      {!isLive ? (
        <SearchView filter={filter} times={times} clear={() => route(path)} />
      ) : container === undefined ? (
        <Empty title="Choose the container to follow">
          <p>The live view shows the requests of one container.</p>
          <ContainerPicker value={null} set={(chosen) => change({ container: chosen ?? undefined })} />
        </Empty>
      ) : (
        <LiveView key={container} container={container} filter={filter} />
      )}
    </Page>
  );
}
