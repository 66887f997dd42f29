// Runs the server side of a conformance suite, and takes its verdicts apart.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { folder } from './gateway.mjs';
import { NODE, run } from './proc.mjs';

// Runs `cli` with `args` and returns { summary: {scenario: [passed, failed]}, checks: {scenario:
// [...]}, text }.
export async function scoreOf(t, cli, port, args) {
  const out = path.join(folder(t), 'results');
  mkdirSync(out);
  const result = await run(NODE, [cli, 'server', '--url', `http://localhost:${port}/mcp`,
    ...args, '--output-dir', out], { within: 90_000, cwd: out });
  const text = (result.stdout + result.stderr).replace(/\x1b\[[0-9;]*m/g, '');
  const summary = {};
  for (const [, name, passed, failed] of text.matchAll(
    /^\s*[✓✗~!]\s+([\w-]+): (\d+) passed, (\d+) failed/gm)) {
    summary[name] = [Number(passed), Number(failed)];
  }
  return { summary, checks: readChecks(out), text };
}

function readChecks(dir) {
  const checks = {};
  for (const entry of readdirSync(dir, { recursive: true })) {
    if (path.basename(entry) !== 'checks.json') continue;
    const scenario = path.basename(path.dirname(entry))
      .replace(/^server-(.*)-\d{4}-\d\d-\d\dT.*$/, '$1');
    checks[scenario] = JSON.parse(readFileSync(path.join(dir, entry), 'utf8'))
      .map(({ id, status }) => `${id}: ${status}`);
  }
  return checks;
}

export const total = summary => Object.values(summary)
  .reduce(([passed, failed], [p, f]) => [passed + p, failed + f], [0, 0]);
