// CORS from outside: what a browser at a page of another origin is told by `limpet replica` and by
// a gateway with `origins`. Case codes: HDR.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { gateway } from './lib/gateway.mjs';
import { send } from './lib/http.mjs';
import { LIMPET, start } from './lib/proc.mjs';
import { initialize, post, request, SESSION } from './lib/rpc.mjs';

const APP = 'https://app.example.test';
const PAGE = { Origin: APP };
const ALLOWED = 'access-control-allow-origin';

async function replica(t) {
  let proc;
  t.after(() => proc?.stop());
  proc = start(t, 'limpet replica', LIMPET, ['replica'],
    { env: { LIMPET_ALLOWED_ORIGINS: APP } });
  const [, url] = await proc.says(/listening on (http:\S+)\n/);
  return { proc, url };
}

function assertReadable(answer, status) {
  assert.equal(answer.status, status, answer.text);
  const all = name => answer.rawHeaders.filter(([n]) => n.toLowerCase() === name).map(([, v]) => v);
  assert.deepEqual(all(ALLOWED), [APP]);
  assert.match(all('vary').join(), /\bOrigin\b/);
  assert.equal(all('access-control-expose-headers').length, 1);
  assert.match(all('access-control-expose-headers')[0], /\bMcp-Session-Id\b.*\bRetry-After\b/);
}

const preflight = (url, asked, origin = APP) => send(url, { method: 'OPTIONS', headers: {
  Origin: origin, 'Access-Control-Request-Method': 'POST',
  'Access-Control-Request-Headers': asked } });

async function assertPreflights(url) {
  const asked = ['last-event-id', 'mcp-method', 'mcp-name', 'mcp-param-region', 'authorization'];
  const answer = await preflight(url, [...asked, 'x-evil'].join());
  assertReadable(answer, 204);
  const names = answer.headers['access-control-allow-headers'].split(/, */);
  for (const name of asked) assert.ok(names.includes(name), name);
  assert.ok(!names.includes('x-evil'));
  const methods = answer.headers['access-control-allow-methods'].split(/, */);
  assert.deepEqual(methods.sort(), ['DELETE', 'GET', 'OPTIONS', 'POST']);
  assert.ok(Number(answer.headers['access-control-max-age']) <= 86400);
  const refused = await preflight(url, 'accept', 'https://evil.example.test');
  assert.equal(refused.status, 403);
  assert.equal(refused.headers[ALLOWED], undefined);
}

suite('CORS', () => {
  test('HDR-02, HDR-04, HDR-09 limpet replica with allowed origins', async t => {
    const { url } = await replica(t);
    await assertPreflights(url);
    const opened = await post(url, initialize(1), PAGE);
    assertReadable(opened, 200);
    const session = { ...PAGE, [SESSION]: opened.headers[SESSION] };
    assertReadable(await post(url, request(2, 'ping'), session), 200);
    assertReadable(await post(url, request(2, 'ping'), PAGE), 400);
    assertReadable(await post(url, request(2, 'ping'), { ...PAGE, [SESSION]: 'x' }), 404);
    assertReadable(await send(url, { method: 'PUT', headers: PAGE }), 405);
    assertReadable(await send(url, { method: 'DELETE', headers: session }), 200);
    assert.equal((await post(url, initialize(1))).headers[ALLOWED], undefined);
  });

  test('HDR-02, HDR-04, HDR-09 a gateway with origins, also when its replica is gone', async t => {
    const { proc, url } = await replica(t);
    const limpet = await gateway(t, { replicas: [url], server: { origins: [APP] } });
    await assertPreflights(limpet.url);
    const opened = await post(limpet.url, initialize(1), PAGE);
    assertReadable(opened, 200);
    const session = { ...PAGE, [SESSION]: opened.headers[SESSION] };
    assertReadable(await post(limpet.url, request(2, 'ping'), session), 200);
    assertReadable(await post(limpet.url, request(2, 'ping'), PAGE), 400);
    assertReadable(await post(limpet.url, request(2, 'ping'), { ...PAGE, [SESSION]: 'x' }), 404);
    assertReadable(await send(limpet.url, { method: 'PUT', headers: PAGE }), 405);
    await proc.stop();
    const lost = await post(limpet.url, request(2, 'ping'), session);
    assertReadable(lost, lost.status);
    assert.ok([404, 502, 503].includes(lost.status), `${lost.status}`);
    await assertPreflights(limpet.url);
  });
});
