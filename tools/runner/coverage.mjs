// What the tests reach of src/, by gcov. Two gates: the whole test run against [P11], and each
// parser against its own fuzz corpus alone.
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { LOGS, run, tail } from './run.mjs';

const PERCENT_MIN = 90;
const PLURALS = { line: 'lines', function: 'functions', branch: 'branches' };
const PURE_ROOMS = ['base', 'seam', 'wire', 'mcp', 'link', 'gate', 'store', 'serve', 'call', 'obs', 'lib'];

// A branch of an assertion is never taken both ways, and a place that no path reaches is no line.
const ASSERTIONS = String.raw`.*\bLP_(ASSERT|EXPENSIVE|UNREACHABLE)\b.*`;
const NO_LINES = String.raw`.*\bLP_UNREACHABLE\b.*`;

export function reset(dir) {
  for (const file of globSync(`${dir}/**/*.gcda`)) rmSync(file);
}

// A map from file name to gcovr's summary of it; `objects` are the folders where it looks.
export async function measure(dir, log, objects = [dir]) {
  const summary = path.join(LOGS, log + '.json');
  const result = await run(log, 'gcovr', ['-r', '.', '-j', '2', '--filter', 'src/',
    '--exclude-branches-by-pattern', ASSERTIONS, '--exclude-lines-by-pattern', NO_LINES,
    '--exclude-unreachable-branches', '--gcov-ignore-parse-errors', '--json-summary', summary, ...objects]);
  if (result.code !== 0) throw new Error(`gcovr failed:\n${tail(result)}`);
  const { files } = JSON.parse(readFileSync(summary, 'utf8'));
  return new Map(files.map(file => [file.filename, file]));
}

const percent = (covered, total) => total ? 100 * covered / total : 100;

// A table alone has no lines that could be run.
const hasCode = name => /^\{$/m.test(readFileSync(name, 'utf8'));

export function judge(name, file) {
  if (!file) return hasCode(name) ? [`${name}: nothing of it is ever built or run`] : [];
  const kinds = ['line', 'function'];
  if (PURE_ROOMS.includes(name.split('/')[1])) kinds.push('branch');
  return kinds.flatMap(kind => {
    const [covered, total] = [file[`${kind}_covered`], file[`${kind}_total`]];
    const reached = percent(covered, total);
    return reached >= PERCENT_MIN ? [] :
      [`${name}: ${reached.toFixed(1)} % of its ${total} ${PLURALS[kind]}`];
  });
}

// Each file of src/ is one test. The table of all goes to the log folder.
export async function gate(dir) {
  const measured = await measure(dir, 'coverage');
  const sources = globSync('src/**/*.c').sort();
  const result = { passed: 0, failed: 0, notes: [] };
  for (const name of new Set([...sources, ...[...measured.keys()].sort()])) {
    const complaints = judge(name, measured.get(name));
    result[complaints.length ? 'failed' : 'passed']++;
    result.notes.push(...complaints.map(line => '    ' + line));
  }
  result.notes.push(totals(measured));
  return result;
}

function totals(measured) {
  const sum = (kind, what) =>
    [...measured.values()].reduce((n, file) => n + file[`${kind}_${what}`], 0);
  return '    all of src/: ' + ['line', 'function', 'branch'].map(kind =>
    `${percent(sum(kind, 'covered'), sum(kind, 'total')).toFixed(1)} % of ${kind} coverage`).join(', ');
}

// test/fuzz/covers.txt: a target and the files whose lines its corpus must reach.
export function covers(file = 'test/fuzz/covers.txt') {
  return readFileSync(file, 'utf8').split('\n')
    .filter(line => line && !line.startsWith('#'))
    .map(line => line.trim().split(/\s+/))
    .map(([target, ...files]) => ({ target, files }));
}

export async function corpusGate(dir, targets) {
  const result = { passed: 0, failed: 0, notes: [] };
  const fail = note => { result.failed++; result.notes.push('    ' + note); };
  const known = covers();
  for (const name of targets) {
    if (!known.some(({ target }) => target === name)) fail(`covers.txt does not name ${name}`);
  }
  for (const { target, files } of known) {
    const replay = `${dir}/test/fuzz/replay_${target}`;
    if (!existsSync(replay)) { fail(`covers.txt names ${target}, which is not built`); continue; }
    reset(dir);
    const played = await run(`corpus-${target}`, replay, [`test/fuzz/corpus/${target}`]);
    if (played.code !== 0) { fail(`replay of ${target} ended with ${played.code}`); continue; }
    const objects = new Set(files.map(file => path.join(dir, path.dirname(file))));
    const measured = await measure(dir, `corpus-coverage-${target}`, [...objects]);
    for (const name of files) {
      const file = measured.get(name);
      const reached = file ? percent(file.line_covered, file.line_total) : 0;
      if (reached >= PERCENT_MIN) result.passed++;
      else fail(`the corpus of ${target} reaches ${reached.toFixed(1)} % of the lines of ${name}`);
    }
  }
  reset(dir);
  return result;
}
