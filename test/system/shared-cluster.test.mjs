// `--session shared` in a real cluster of three primaries with a replica each: all of acceptance,
// and a primary that is killed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startCluster } from './lib/redis.mjs';
import { answerOf, Session } from './lib/rpc.mjs';
import { askedAcross, assertAway, at, countOf, incrementsAtOnce, limpets, ready, twentyOfTwenty,
  until } from './lib/shared.mjs';

test('a cluster: 20 of 20, questions across replicas, increments at once; a primary is killed',
  async t => {
    const cluster = await startCluster(t);
    await t.test('AFF-01 12 replicas behind random choice', sub => twentyOfTwenty(sub, cluster));
    await t.test('MSG-01 asked here, answered there', sub => askedAcross(sub, cluster));
    await t.test('increments at the same time', sub => incrementsAtOnce(sub, cluster));
    await t.test('each write on one replica, then its primary is killed', sub =>
      primaryKilled(sub, cluster));
  });

async function primaryKilled(t, cluster) {
  const [a, b, c] = await limpets(t, 3, cluster, ['--store-wait', '1']);
  await ready([a, b, c]);
  const one = await Session.open(a.url);
  for (let n = 1; n <= 5; n++) {
    assert.equal(countOf(await at(one, n % 2 ? a : b).callTool('counter')), n);
  }
  const node = await cluster.primaryOf(`{limpet:${one.id.replaceAll('-', '')}}`);
  await node.kill();
  await until('a replica of the store has taken over', async () => {
    const answer = await at(one, c).ask('ping');
    if (answer.status !== 200) assertAway(answer, 1);
    return answer.status === 200;
  });
  // Nobody is left to confirm a write: it is done, and said to be in doubt.
  await until('a write', async () =>
    /may have been counted/.test((await at(one, b).callTool('counter')).text));
  await node.start();
  let doubts = 1;
  const last = await until('a write that is confirmed', async () => {
    const { result, error } = answerOf(await at(one, b).callTool('counter'));
    if (/may have/.test(error?.message)) doubts++;
    return result?.structuredContent.count;
  });
  assert.equal(last, 5 + doubts + 1, `nothing lost and nothing twice, ${doubts} in doubt`);
}
