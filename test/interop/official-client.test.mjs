// The official v1 client through the gateway, every HTTP request on a connection of its own, before
// three real replicas: no session may see a failure, or another replica than the one that opened it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, KINDS, session, sessions, until } from '../system/lib/flow.mjs';
import { gateway, keyFile } from '../system/lib/gateway.mjs';
import { freshFetch } from '../system/lib/http.mjs';
import { conf, everything, urls } from '../system/lib/replicas.mjs';

const FLEETS = { everything, conf };
const WIDTH = 16;

function assertAllGood({ results, failures }, count) {
  assert.deepEqual(failures, []);
  assert.equal(results.length, count);
}

function assertSpread(results, names) {
  const owners = new Set(results.map(result => result.owner));
  assert.deepEqual([...owners].sort(), names, 'every replica took sessions');
}

for (const [kind, fleet] of Object.entries(FLEETS)) {
  test(`control: 5 sessions directly on one replica (${kind})`, async t => {
    const [replica] = await fleet(t, 1);
    assertAllGood(await sessions(5, 5, () => session(replica.url, kind)), 5);
  });

  test(`100 sessions through one gateway, fresh connections (${kind})`, async t => {
    const limpet = await gateway(t, { replicas: urls(await fleet(t, 3)) });
    const outcome = await sessions(100, WIDTH, () => session(limpet.url, kind));
    assertAllGood(outcome, 100);
    assertSpread(outcome.results, ['r1', 'r2', 'r3']);
    const statuses = new Set(outcome.results.map(result => result.lostStatus));
    assert.deepEqual([...statuses], [404], 'an ended session is 404 whatever the replica says');
  });

  test(`100 sessions, requests alternating between two gateways (${kind})`, async t => {
    const replicas = urls(await fleet(t, 3));
    const key = keyFile(t);
    const first = await gateway(t, { replicas, key });
    const second = await gateway(t, { replicas, key, flags: ['--threads', '2'] });
    const outcome = await sessions(100, WIDTH, () => {
      let turn = 0;
      const fetch = freshFetch({ pick: url => Object.assign(new URL(url),
        { port: (turn++ % 2 ? second : first).port }) });
      return session(first.url, kind, { fetch });
    });
    assertAllGood(outcome, 100);
    assertSpread(outcome.results, ['r1', 'r2', 'r3']);
  });
}

// Two gateways behind a balancer that takes the other one when a connection is refused.
function balancer(gateways) {
  const flights = new Set();
  let turn = 0;
  const inner = gateways.map(limpet => freshFetch(
    { pick: url => Object.assign(new URL(url), { port: limpet.port }) }));
  const fetch = async (url, init = {}) => {
    const first = turn++ % gateways.length;
    for (const i of [first, (first + 1) % gateways.length]) {
      const method = init.method ?? 'GET';
      const flight = { gateway: gateways[i], began: performance.now(), method };
      flights.add(flight);
      try {
        const answer = await inner[i](url, init);
        flight.status = answer.status;
        return answer;
      } catch (error) {
        flight.error = error.code;
        if (error.code !== 'ECONNREFUSED') throw error;
      }
    }
    throw new Error('no gateway takes connections');
  };
  return { fetch, flights };
}

// Calls `count` without pause until told to stop; notes when each call was made and how it ended.
async function keepCalling(client, calls, isOver) {
  for (let n = 0; !isOver(); n++) {
    const call = { began: performance.now() };
    calls.push(call);
    try {
      call.answer = await KINDS.conf.whoami(client);
    } catch (error) {
      call.error = error.message;
    }
    call.ended = performance.now();
    await sleep(10);
  }
}

test('kill -9 of one of two gateways fails only what was in flight on it', async t => {
  const replicas = urls(await conf(t, 3));
  const key = keyFile(t);
  const first = await gateway(t, { replicas, key });
  const second = await gateway(t, { replicas, key });
  const clients = await Promise.all(Array.from({ length: 12 }, async () => {
    const { fetch, flights } = balancer([first, second]);
    const connected = await connect(first.url, { fetch });
    const owner = await KINDS.conf.whoami(connected.client);
    await until(() => [...flights].some(f => f.method === 'GET' && f.status === 200), 3000, 'GET');
    return { ...connected, owner, flights, calls: [] };
  }));

  let isOver = false;
  const callers = clients.map(c => keepCalling(c.client, c.calls, () => isOver));
  await sleep(300);
  const broken = clients.filter(c => [...c.flights].some(
    f => f.method === 'GET' && f.status === 200 && f.gateway === first));
  const sentAt = performance.now();
  await first.stop('SIGKILL');
  const killedAt = performance.now();
  await first.start();
  const upAt = performance.now();
  await Promise.all(broken.map(c => until(() => [...c.flights].some(
    f => f.method === 'GET' && f.status === 200 && f.began > killedAt),
  killedAt + 2500 - performance.now(), 'the GET stream is back')));
  await sleep(700);
  isOver = true;
  await Promise.all(callers);

  for (const { owner, calls, client, seen } of clients) {
    const later = calls.filter(call => call.began > killedAt);
    assert.deepEqual(later.filter(call => call.error), [], 'no later call fails');
    assert.ok(later.some(call => call.began > upAt), 'calls went on after the restart');
    const strangers = calls.filter(call => call.answer !== undefined && call.answer !== owner);
    assert.deepEqual(strangers, [], 'every answer is from the owner');
    const before = calls.filter(call => call.ended < sentAt && call.error);
    assert.deepEqual(before, [], 'no earlier call fails');
    seen.log = 0;
    await client.callTool({ name: 'notify', arguments: { n: 1 } });
    await until(() => seen.log > 0, 3000, 'a notification on the stream that came back');
    await client.close();
  }
  assert.ok(broken.length > 0, 'some GET streams were on the killed gateway');
});
