// The kinds of test there are and how each one's results are counted: Meson's JUnit file, the TAP
// of Node's runner, libFuzzer's exit status.
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { add, NODE, one, pool, run, tail } from './run.mjs';

const CORES = 2;

// Builds into `dir`; one test, since warnings are errors in it.
export function build(dir, options, { cc = 'gcc', targets = '' } = {}) {
  return one(`build-${dir}`, 'tools/build', [dir, ...options], { env: { CC: cc, TARGETS: targets } });
}

export async function mesonTests(dir, args = [], env = {}) {
  const log = `meson-${dir}`;
  const report = path.join(dir, 'meson-logs/testlog.junit.xml');
  rmSync(report, { force: true });
  const result = await run(log, 'meson',
    ['test', '-C', dir, '--no-rebuild', '--print-errorlogs', ...args], { env });
  const xml = existsSync(report) ? readFileSync(report, 'utf8') : '';
  const all = xml.match(/<testcase\b/g)?.length ?? 0;
  const skipped = xml.match(/<skipped\b/g)?.length ?? 0;
  let failed = xml.match(/<(failure|error)\b/g)?.length ?? 0;
  // A program that dies after its last good line has no bad line in the report.
  if (result.code !== 0 && failed === 0) failed = 1;
  return {
    passed: Math.max(0, all - failed - skipped), failed, skipped,
    notes: failed ? [tail(result)] : [] };
}

// The test files of Node's runner in a folder; files two at a time, as there are two cores.
export async function nodeTests(folder, log, env, { minutes, filter = '' } = {}) {
  const files = globSync(`test/${folder}/*.test.mjs`).filter(f => f.includes(filter)).sort();
  if (!files.length) return { passed: 0, failed: 0, notes: [`no test files in test/${folder}`] };
  const result = await run(log, NODE, ['--test', `--test-concurrency=${CORES}`,
    '--test-timeout=600000', '--test-reporter=tap', ...files], { env, minutes });
  const text = result.text();
  const count = word => Number(text.match(new RegExp(`^# ${word} (\\d+)$`, 'm'))?.[1] ?? 0);
  let failed = count('fail') + count('cancelled');
  if (result.code !== 0 && failed === 0) failed = 1;
  const bad = text.split('\n').filter(line => /^\s*not ok /.test(line)).slice(0, 40);
  return {
    passed: count('pass'), failed, skipped: count('skipped'),
    notes: failed ? [...bad, `    all of it: ${result.log}`, bad.length ? '' : tail(result)] : [] };
}

export const fuzzTargets = () =>
  globSync('test/fuzz/fuzz_*.c').map(f => path.basename(f, '.c').slice('fuzz_'.length)).sort();

// Each target for `seconds`, starting from its corpus; what it finds goes to a folder of the
// build, so that the tree stays as it is.
export async function fuzz(dir, seconds) {
  const results = await pool(fuzzTargets(), CORES, async name => {
    const finds = path.join(dir, 'finds', name);
    const crashes = path.join(dir, 'crashes', name);
    mkdirSync(finds, { recursive: true });
    mkdirSync(crashes, { recursive: true });
    const before = new Set(readdirSync(crashes));
    const result = await run(`fuzz-${name}`, `${dir}/test/fuzz/fuzz_${name}`,
      [`-max_total_time=${seconds}`, '-timeout=10', '-rss_limit_mb=2048', '-print_final_stats=1',
        `-artifact_prefix=${crashes}/`, finds, `test/fuzz/corpus/${name}`],
      { minutes: seconds / 60 + 5 });
    const runs = Number(result.text().match(/stat::number_of_executed_units:\s*(\d+)/)?.[1] ?? 0);
    if (result.code === 0 && runs > 0) return { passed: 1, failed: 0, notes: [] };
    const found = readdirSync(crashes).filter(f => !before.has(f)).map(f => path.join(crashes, f));
    return { passed: 0, failed: 1, notes: [
      `fuzz target ${name} ended with ${result.code} after ${runs} runs`,
      ...found.map(f => `    to see it again: ${dir}/test/fuzz/fuzz_${name} ${f}`), tail(result)] };
  });
  return add(results);
}
