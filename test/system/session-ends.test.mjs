// How sessions end and what is told of it (LIF-06), a replica that is itself balanced (AFF-10), and
// what becomes of one server's sessions when it starts anew (STA-05).
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { haproxy } from './lib/fronts.mjs';
import { gateway } from './lib/gateway.mjs';
import { LIMPET, run, sleep } from './lib/proc.mjs';
import { assertLost, initialize, post, request, SESSION, Session } from './lib/rpc.mjs';
import { tinies, tiny } from './lib/tiny.mjs';

const metrics = async limpet => (await limpet.admin('/metrics')).text;
const status = async limpet => (await run(LIMPET,
  ['status', '--admin', `127.0.0.1:${limpet.adminPort}`])).stdout;

// The causes of the ends so far, by the metric; those at 0 left out.
async function ends(limpet) {
  const rows = (await metrics(limpet))
    .matchAll(/^limpet_sessions_ended_total\{cause="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...rows].map(row => [row[1], Number(row[2])]).filter(row => row[1]));
}

async function until(test, within = 10_000) {
  for (const end = performance.now() + within; ;) {
    if (await test()) return;
    assert.ok(performance.now() < end, `not within ${within} ms: ${test}`);
    await sleep(50);
  }
}

suite('session ends', () => {
  // The gateway ends no idle session itself (requirement [G16], not yet): whom a replica's own idle
  // time has reached is one more session that the replica does not know any more.
  test('LIF-06 100 sessions, counted by how they ended; a restart ends none', async t => {
    const [a, b, c] = await tinies(t, 3);
    const limpet = await gateway(t, { server: { replicas: [{ url: a.url, weight: 30 },
      { url: b.url, weight: 35 }, { url: c.url, weight: 35 }] } });
    const all = [];
    for (let i = 0; i < 100; i++) all.push(await Session.open(limpet.url));
    assert.deepEqual([a, b, c].map(replica => replica.sessions.size), [30, 35, 35]);
    const at = new Map([[a, []], [b, []], [c, []]]);
    for (const session of all) {
      const name = await session.tool('whoami');
      at.get([a, b, c].find(replica => replica.name === name)).push(session);
    }
    for (const session of at.get(b).splice(0, 10)) {
      assert.equal((await session.delete()).status, 200);
      assertLost(await session.ask('ping'), 2);
    }
    // 20 that were idle for too long, and 5 that are forgotten: the replica says so when asked.
    const forgotten = [...at.get(b).splice(0, 10), ...at.get(c).splice(0, 15)];
    const idsOf = replica => [...replica.sessions.keys()];
    for (const id of idsOf(b).slice(0, 10)) b.sessions.delete(id);
    for (const id of idsOf(c).slice(0, 15)) c.sessions.delete(id);
    for (const session of forgotten) {
      for (const id of [2, 3]) assertLost(await session.ask('ping'), id);
    }
    await a.stop();
    assert.ok([404, 502, 503].includes((await at.get(a)[0].ask('ping')).status));
    await until(async () => (await ends(limpet)).replica_gone);
    assert.deepEqual(await ends(limpet), { deleted: 10, lost: 25, replica_gone: 30 });
    for (const session of at.get(a).slice(1)) assertLost(await session.ask('ping'), 2);
    assert.match(await metrics(limpet), /^limpet_sessions_opened_total 100$/m);
    assert.match(await status(limpet),
      /^Sessions  100 opened; ended: 10 deleted, 25 lost, 30 replica_gone$/m);
    const json = (await limpet.admin('/status')).json;
    assert.deepEqual(json.sessions.ended, { deleted: 10, lost: 25, replica_gone: 30, closed: 0,
      replaced: 0, idle: 0, limit: 0 });
    assert.equal(json.servers[0].replicas.some(row => row.seems_balanced), false);
    await limpet.restart();
    const left = [...at.get(b), ...at.get(c)];
    assert.equal(left.length, 35);
    for (const session of left) assert.match(await session.tool('whoami'), /^r[23]$/);
    assert.deepEqual(await ends(limpet), {});
  });

  test('LIF-06 one that is begun anew in the place of another one is replaced', async t => {
    const replicas = await tinies(t, 2);
    const limpet = await gateway(t, { replicas: replicas.map(r => r.url) });
    const old = await Session.open(limpet.url);
    const next = await post(limpet.url, initialize(1), { [SESSION]: old.id });
    assert.equal(next.status, 200);
    assert.notEqual(next.headers[SESSION], old.id);
    assert.deepEqual(await ends(limpet), { replaced: 1 });
    assert.equal(await old.tool('whoami'), 'r1', 'its replica has not been told to end it');
  });

  test('AFF-10 a replica that is a round robin over four is told of, and nothing loops', async t => {
    const behind = await tinies(t, 4);
    const front = await haproxy(t, behind.map(replica => `127.0.0.1:${replica.port}`),
      { backend: 'balance roundrobin\n  option http-server-close' });
    const limpet = await gateway(t, { server: { replicas: [{ url: front, name: 'fn' }] } });
    let begun = 0, lost = 0;
    for (let i = 0; i < 8; i++) {
      const answer = await post(limpet.url, initialize(0));
      begun++;
      assert.equal(answer.status, 200);
      // The next in turn is another one; how often what belongs to none is asked for is its affair.
      for (let call = 1; call <= 3; call++) {
        const got = await post(limpet.url, request(call, 'ping'),
          { [SESSION]: answer.headers[SESSION] });
        if (got.status === 200) continue;
        assertLost(got, call);
        lost++;
      }
    }
    assert.ok(lost > 8, `${lost}`);
    assert.equal(behind.reduce((sum, replica) => sum + replica.initializes, 0), begun);
    const said = new RegExp('backend fn loses sessions it has issued; it seems to be balanced ' +
      'itself \\(server default, \\d+ sessions so far\\)', 'g');
    await until(() => limpet.proc.log.match(said));
    assert.equal(limpet.proc.log.match(said).length, 1, 'once a minute at most');
    const fresh = Number(/^limpet_sessions_lost_fresh_total (\d+)$/m.exec(await metrics(limpet))[1]);
    assert.equal(fresh, 8);
    assert.match(await status(limpet),
      /\bfn\n +loses sessions it has issued \(8 so far\); it seems to be balanced itself$/m);
    assert.equal((await limpet.admin('/status')).json.servers[0].replicas[0].seems_balanced, true);
  });

  test('AFF-10 the probe says what helps where instances may not be listed', async t => {
    const behind = await tinies(t, 4);
    const front = await haproxy(t, behind.map(replica => `127.0.0.1:${replica.port}`),
      { backend: 'balance roundrobin\n  option http-server-close' });
    const { stdout } = await run(LIMPET, ['probe', '--json', front], { within: 60_000 });
    const { verdict, cookie, fixes } = JSON.parse(stdout);
    assert.equal(verdict, 'broken');
    assert.deepEqual(cookie.offered, []); // so that a client with cookies is no advice
    assert.match(fixes['Limpet gateway'], /name every replica/);
    assert.match(fixes['a platform whose balancer you cannot change'], /a sidecar beside each instance/);
    assert.match(fixes["the server's code"], /keep no sessions/);
    assert.doesNotMatch(stdout, /cookie-jar/);
  });

  test('AFF-10 a replica that was started anew is not taken for a balancer', async t => {
    const replica = await tiny(t, 'r');
    const limpet = await gateway(t, { replicas: [replica.url] });
    const sessions = await Promise.all([1, 2, 3].map(() => Session.open(limpet.url)));
    replica.sessions.clear();
    replica.server.closeAllConnections();
    for (const session of sessions) assertLost(await session.ask('ping'), 1);
    const next = await Session.open(limpet.url);
    assert.equal(await next.tool('count'), 'r 1');
    assert.doesNotMatch(limpet.proc.log, /balanced itself/);
    assert.doesNotMatch(await status(limpet), /balanced itself/);
  });

  // Limpet puts one server behind one path: a session has one upstream. So the dead id is the whole
  // session's, and ends with it.
  test('STA-05 a server that starts anew: 404, then a new session; the old id is sent no more', async t => {
    const first = await tiny(t, 'first'), second = await tiny(t, 'second');
    const limpet = await gateway(t, { servers: [
      { name: 'one', path: '/one', replicas: [first.url] },
      { name: 'two', path: '/two', replicas: [second.url] }] });
    const [one, two] = [await Session.open(limpet.at('/one')), await Session.open(limpet.at('/two'))];
    assert.equal(await one.tool('count'), 'first 1');
    assert.equal(await two.tool('count'), 'second 1');
    const oldId = [...second.sessions.keys()][0];
    const { port } = second;
    await second.stop();
    const again = await tiny(t, 'again', { port });
    assertLost(await two.callTool('count'), 2);
    const fresh = await Session.open(limpet.at('/two'));
    assert.equal(await fresh.tool('count'), 'again 1');
    assert.equal(await one.tool('count'), 'first 2', 'no call of the other server was repeated');
    const askedWith = again.requests.map(asked => asked.headers['mcp-session-id']);
    assert.ok(askedWith.filter(id => id === oldId).length <= 1, 'only to find it out');
    assert.equal(again.requests.filter(asked => asked.json?.method === 'initialize').length, 1);
    assert.ok(again.requests.slice(1 + askedWith.indexOf(oldId)).every(
      asked => asked.headers['mcp-session-id'] !== oldId));
  });
});
