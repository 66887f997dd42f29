// The 2024-11-05 transport through the gateway, mounted under another path than the replicas use.
// The session id is in a body only (the endpoint event), so the gateway must have rewritten it.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { connect, session, sessions } from '../system/lib/flow.mjs';
import { gateway, keyFile, newKey } from '../system/lib/gateway.mjs';
import { openEvents, send } from '../system/lib/http.mjs';
import { everythingSse, oldSse, urls } from '../system/lib/replicas.mjs';
import { assertLost, initialize, notification, POST_HEADERS, post, request } from
  '../system/lib/rpc.mjs';

const PREFIX = '/team/a';
const sse = { sse: true };
const mounted = (replicas, more = {}) => ({ replicas, path: `${PREFIX}/mcp`,
  server: { sse_path: `${PREFIX}/sse`, sse_upstream: '/sse', ...more } });

// Opens a stream by hand and waits for its endpoint event.
async function openOld(limpet) {
  const stream = await openEvents(limpet.at(`${PREFIX}/sse`),
    { headers: { accept: 'text/event-stream' } });
  assert.equal(stream.status, 200);
  const event = await stream.events.until(r => r.events[0], 3000, 'the endpoint event');
  assert.equal(event.type, 'endpoint');
  stream.endpoint = new URL(event.data, limpet.at(`${PREFIX}/sse`));
  return stream;
}

async function greet(stream) {
  const answer = await post(stream.endpoint, initialize(1));
  assert.ok([200, 202].includes(answer.status), `${answer.status} ${answer.text}`);
  await stream.events.message(m => m.id === 1);
  await post(stream.endpoint, notification('notifications/initialized'));
}

suite('the official client over old SSE', () => {
  test('control: 5 sessions directly on one replica', async t => {
    const [replica] = await everythingSse(t, 1);
    const url = `http://127.0.0.1:${replica.port}/sse`;
    const { failures } = await sessions(5, 5, () => session(url, 'everything', sse));
    assert.deepEqual(failures, []);
  });

  test('SSE-01 100 sessions over three reference servers', async t => {
    const limpet = await gateway(t, mounted(urls(await everythingSse(t, 3))));
    const url = limpet.at(`${PREFIX}/sse`);
    const { results, failures } = await sessions(100, 10, () => session(url, 'everything', sse));
    assert.deepEqual(failures, []);
    assert.equal(new Set(results.map(r => r.owner)).size, 3, 'all replicas took sessions');
  });

  const ENDPOINTS = {
    'a path': '/messages?sessionId={id}',
    'a relative path': 'messages?sessionId={id}',
    'a query only': '?sessionId={id}',
    'an absolute URL': 'http://127.0.0.1:{port}/messages?sessionId={id}',
    'other query members': '/messages?tenant=t%201&sessionId={id}&x=2',
  };
  for (const [what, endpoint] of Object.entries(ENDPOINTS)) {
    test(`SSE-02 endpoint event: ${what}`, async t => {
      const replicas = await oldSse(t, 3, { ENDPOINT: endpoint });
      const limpet = await gateway(t, mounted(urls(replicas)));
      const url = limpet.at(`${PREFIX}/sse`);
      const { results, failures } = await sessions(12, 6, () => session(url, 'conf', sse));
      assert.deepEqual(failures, []);
      assert.equal(new Set(results.map(r => r.owner)).size, 3);
      const stream = await openOld(limpet);
      assert.equal(stream.endpoint.origin, new URL(url).origin);
      assert.equal(stream.endpoint.pathname, `${PREFIX}/sse`);
      assert.ok(stream.endpoint.searchParams.get('lp'), 'the token is in lp');
      assert.equal(stream.endpoint.searchParams.get('sessionId'), null, 'the upstream key is hidden');
      await greet(stream);
      stream.close();
      const posts = (await Promise.all(replicas.map(r => r.seen()))).flat()
        .filter(seen => seen.http === 'POST').map(seen => new URL(seen.url, 'http://x'));
      const expected = new URL(endpoint.replace('{port}', '1'), 'http://x/sse');
      assert.ok(posts.length > 0);
      for (const seen of posts) {
        assert.equal(seen.pathname, expected.pathname);
        const keys = [...expected.searchParams.keys()].sort();
        assert.deepEqual([...seen.searchParams.keys()].sort(), keys, 'no lp, nothing lost');
        const tenant = seen.searchParams.get('tenant');
        assert.equal(tenant, expected.searchParams.get('tenant'));
      }
    });
  }

  test('SSE-02 a public prefix that the replica announces itself is not doubled', async t => {
    const endpoint = `${PREFIX}/messages?sessionId={id}`;
    const [replica] = await oldSse(t, 1, { ENDPOINT: endpoint });
    const limpet = await gateway(t, mounted([replica.url]));
    const stream = await openOld(limpet);
    assert.equal(stream.endpoint.pathname, `${PREFIX}/sse`);
    await greet(stream);
    stream.close();
    const seen = (await replica.seen()).find(s => s.http === 'POST');
    assert.equal(new URL(seen.url, 'http://x').pathname, `${PREFIX}/messages`);
  });

  test('both transports on one path: a GET without a session id is old SSE', async t => {
    const [replica] = await oldSse(t, 1, { ENDPOINT: '?sessionId={id}' });
    const limpet = await gateway(t, { replicas: [replica.url],
      server: { sse_path: '/mcp', sse_upstream: '/sse' } });
    const { failures } = await sessions(3, 3, () => session(limpet.url, 'conf', sse));
    assert.deepEqual(failures, []);
  });
});

suite('where old SSE goes wrong', () => {
  test('SSE-01 closing the stream kills its token', async t => {
    const replicas = await oldSse(t, 3, { UNKNOWN: 'hang' });
    const limpet = await gateway(t, mounted(urls(replicas), { timeouts: { sse_post: '2s' } }));
    const stream = await openOld(limpet);
    await greet(stream);
    stream.close();
    await limpet.record(r => r.path === `${PREFIX}/sse` && r.http_method === 'GET');
    const answer = await post(stream.endpoint, request(7, 'ping'));
    assertLost(answer, 7);
    assert.ok(answer.ms < 500, `at once, not after ${answer.ms} ms`);
  });

  test('SSE-01 a stream that the replica closes ends at the client, its token too', async t => {
    const [replica] = await oldSse(t, 1);
    const limpet = await gateway(t, mounted([replica.url]));
    const stream = await openOld(limpet);
    await greet(stream);
    await replica.kill();
    await stream.events.ended(2000);
    assertLost(await post(stream.endpoint, request(8, 'ping')), 8);
  });

  test('a POST with a foreign token is answered in time', async t => {
    const replicas = urls(await everythingSse(t, 3));
    const limpet = await gateway(t, mounted(replicas, { timeouts: { sse_post: '1s' } }));
    const other = await gateway(t, mounted(replicas));
    const stream = await openOld(other);
    const foreign = new URL(stream.endpoint);
    foreign.port = limpet.port;
    assertLost(await post(foreign, request(3, 'ping')), 3);
    foreign.searchParams.set('lp', 'nonsense');
    assertLost(await post(foreign, request(4, 'ping')), 4);
    stream.close();
  });

  test('a token of before a restart: the replica hangs, the client gets 504 in time', async t => {
    const replicas = urls(await everythingSse(t, 3));
    const limpet = await gateway(t, mounted(replicas, { timeouts: { sse_post: '1s' } }));
    const stream = await openOld(limpet);
    await greet(stream);
    await limpet.restart();
    await stream.events.ended(2000);
    const answer = await post(stream.endpoint, request(5, 'ping'));
    assert.ok([404, 504].includes(answer.status), `${answer.status} ${answer.text}`);
    assert.equal(answer.json.id, 5);
    assert.ok(answer.ms < 2500, `${answer.ms} ms`);
  });

  test('a live stream at one gateway, its POSTs through another with the same key', async t => {
    const replicas = urls(await oldSse(t, 3));
    const key = keyFile(t, newKey());
    const first = await gateway(t, { ...mounted(replicas), key });
    const second = await gateway(t, { ...mounted(replicas), key });
    for (let i = 0; i < 6; i++) {
      const stream = await openOld(first);
      stream.endpoint.port = second.port;
      await greet(stream);
      stream.close();
    }
  });

  test('a session id of Streamable HTTP is no token of old SSE, and the reverse', async t => {
    const limpet = await gateway(t, mounted(urls(await oldSse(t, 1))));
    const stream = await openOld(limpet);
    const token = stream.endpoint.searchParams.get('lp');
    assertLost(await post(limpet.url, request(6, 'ping'), { 'mcp-session-id': token }), 6);
    stream.close();
  });

  const HOSTILE = ['https://b.example/m', '//b.example/m', 'http://127.0.0.1:1/m',
    'https://127.0.0.1:{port}/m', 'http://127.0.0.1:{port}@b.example/m', 'javascript:x'];
  for (const endpoint of HOSTILE) {
    test(`SSE-03 an endpoint event that says ${endpoint} is refused`, async t => {
      const [replica] = await oldSse(t, 1, { ENDPOINT: endpoint });
      const limpet = await gateway(t, mounted([replica.url]));
      const answer = await openEvents(limpet.at(`${PREFIX}/sse`),
        { headers: { accept: 'text/event-stream' } });
      await answer.events.ended(2000);
      assert.deepEqual(answer.events.events.filter(e => e.type === 'endpoint'), []);
      assert.ok(!answer.events.text.includes('b.example'), answer.events.text);
      await limpet.record(r => r.reason === 'endpoint_refused');
    });
  }

  const UNUSABLE = {
    'points to another origin; name the path only': 'https://b.example/m',
    'is not a URI reference': '/m\\n',
    'is too long': `/m?sessionId={id}${'x'.repeat(600)}`,
  };
  for (const [sentence, endpoint] of Object.entries(UNUSABLE)) {
    test(`an endpoint event that cannot be used: the log says that it ${sentence}`, async t => {
      const [replica] = await oldSse(t, 1, { ENDPOINT: endpoint });
      const limpet = await gateway(t, mounted([replica.url]));
      const answer = await openEvents(limpet.at(`${PREFIX}/sse`),
        { headers: { accept: 'text/event-stream' } });
      await answer.events.ended(2000);
      await limpet.proc.says(new RegExp(`was ended: the endpoint event ${sentence}`));
    });
  }

  test('a POST without the token is told of the token, not of a header', async t => {
    const limpet = await gateway(t, mounted(urls(await oldSse(t, 1))));
    const answer = await post(limpet.at(`${PREFIX}/sse`), request(5, 'ping'));
    assert.equal(answer.status, 400);
    assert.equal(answer.json.id, 5);
    assert.match(answer.json.error.message, /endpoint event.* query member lp/);
    assert.doesNotMatch(answer.json.error.message, /Mcp-Session-Id/);
  });

  test('SSE-03 only the first endpoint event counts', async t => {
    const [replica] = await oldSse(t, 1, { TWICE: '1' });
    const limpet = await gateway(t, mounted([replica.url]));
    const stream = await openOld(limpet);
    await greet(stream);
    stream.close();
    const paths = (await replica.seen()).filter(s => s.http === 'POST')
      .map(s => new URL(s.url, 'http://x').pathname);
    assert.deepEqual([...new Set(paths)], ['/messages']);
    const endpoints = stream.events.events.filter(e => e.type === 'endpoint').map(e => e.data);
    assert.ok(endpoints.length === 1 || !endpoints[1].includes('elsewhere'), `${endpoints}`);
  });

  test('tokens and upstream keys are in no log', async t => {
    const [replica] = await oldSse(t, 1);
    const limpet = await gateway(t, mounted([replica.url]));
    const stream = await openOld(limpet);
    await greet(stream);
    stream.close();
    await limpet.record(r => r.http_method === 'GET');
    const token = stream.endpoint.searchParams.get('lp');
    assert.ok(!limpet.proc.log.includes(token.slice(4, 40)), 'the token was logged');
    const key = new URL((await replica.seen()).find(s => s.http === 'POST').url, 'http://x')
      .searchParams.get('sessionId');
    assert.ok(!limpet.proc.log.includes(key), 'the upstream key was logged');
  });

  test('GET without a session id where old SSE is off', async t => {
    const limpet = await gateway(t, { replicas: urls(await oldSse(t, 1)) });
    const answer = await send(limpet.at('/sse'), { headers: POST_HEADERS });
    assert.equal(answer.status, 404);
    await assert.rejects(connect(limpet.at('/sse'), sse));
  });
});
