// The library's own servers behind a platform that replays, each with an owner id and nothing
// between: whole sessions of the official client, streams, questions and resumption too [S3], [S4].
// Cases AFF-02, MSG-01.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { session, sessions } from '../system/lib/flow.mjs';
import { LIMPET, start } from '../system/lib/proc.mjs';
import { fly } from '../system/lib/sidecars.mjs';

const CONF_SERVER = path.join(process.env.LIMPET_BUILD ?? path.dirname(LIMPET),
  'test/interop/conf-server');

async function machine(t, self) {
  const proc = start(t, self, CONF_SERVER, ['0', self, self]);
  const [, port] = await proc.says(/listening on http:\S+:(\d+)\/mcp/);
  return { self, port: Number(port) };
}

test('twelve servers: whole sessions of the official client, replayed', async t => {
  const all = await Promise.all(Array.from({ length: 12 }, (_, i) => machine(t, `m${i + 1}`)));
  const front = await fly(t, all);
  const { results, failures } = await sessions(12, 6, () => session(front.url, 'library'));
  assert.deepEqual(failures, []);
  assert.ok(new Set(results.map(result => result.owner)).size > 3);
  for (const result of results) assert.equal(result.lostStatus, 404);
  const methods = new Set(front.log.map(entry => entry.method));
  assert.deepEqual(methods, new Set(['POST', 'GET', 'DELETE']));
  assert.ok(front.log.every(entry => entry.to === entry.id && !entry.isLoop && !entry.isFallback));
});
