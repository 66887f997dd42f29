// The stages of `make test`, cheapest first, so that a mistake is told early.
import { globSync } from 'node:fs';
import path from 'node:path';
import { corpusGate, gate, reset } from './coverage.mjs';
import { build, fuzz, fuzzTargets, mesonTests, nodeTests } from './kinds.mjs';
import { add, one, ROOT, tap } from './run.mjs';

const FUZZ_SECONDS = Number(process.env.FUZZ_SECONDS ?? 36); // 15 targets: under five minutes
const SIM_SEEDS = process.env.SIM_SEEDS ?? '1000';

const GCC = 'build-gcc';
const ASAN = 'build-asan';
const TSAN = 'build-tsan';
const FUZZ = 'build-fuzz';
const COVERAGE = 'build-coverage';
const PURE = ['base', 'wire', 'mcp', 'link', 'gate', 'store', 'serve', 'call', 'obs', 'conf', 'lib'];

const SANITIZE = ['-Db_lundef=false', '-Dexpensive_checks=true'];
const SANITIZER_ENV = {
  ASAN_OPTIONS: 'detect_stack_use_after_return=1:strict_string_checks=1:abort_on_error=1',
  UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1',
  TSAN_OPTIONS: 'halt_on_error=1:second_deadlock_stack=1',
};

const program = dir => ({
  ...SANITIZER_ENV, LIMPET: path.join(ROOT, dir, 'limpet'), LIMPET_BUILD: path.join(ROOT, dir) });
// The program as it is installed; what tests it and is not, comes from the build with tests.
const SHIPPED = { ...program('build'), LIMPET_BUILD: path.join(ROOT, GCC) };

const sources = () =>
  ['src', 'include', 'test', 'doc'].flatMap(dir => globSync(`${dir}/**/*.[ch]`))
    .filter(file => !file.includes('node_modules'));

const libraries = dir => PURE.filter(room => globSync(`src/${room}/*.c`).length)
  .map(room => `${dir}/src/${room}/liblp-${room}.a`);

const sim = (dir, seeds) => one(`sim-${dir}`, `${dir}/test/sim/sim`, ['--seeds', seeds],
  { env: SANITIZER_ENV });

// Threads are only in io, in the program and where a library is posted to: the tests of these, and
// system tests on two threads.
async function threads() {
  const names = globSync('test/unit/test_{io,libserver}*.c').map(file => path.basename(file, '.c'));
  const built = await build(TSAN, ['-Db_sanitize=thread', ...SANITIZE], { cc: 'clang-14',
    targets: ['limpet', ...names.map(name => `test/unit/${name}`)].join(' ') });
  if (built.failed) return built;
  const env = { ...program(TSAN), LIMPET_THREADS: '2' };
  return add(built, await mesonTests(TSAN, names, SANITIZER_ENV),
    await nodeTests('system', 'system-tsan', env, { filter: 'affinity' }));
}

// An instrumented program writes its counts down in exit(), so that is how each must end: the tests
// end it politely (meson.build does the rest).
async function coverage() {
  const built = await build(COVERAGE, ['--buildtype=debug', '-Db_coverage=true']);
  if (built.failed) return built;
  const corpora = await corpusGate(COVERAGE, fuzzTargets());
  const env = { ...program(COVERAGE), LIMPET_END: 'politely' };
  reset(COVERAGE);
  const runs = [
    await mesonTests(COVERAGE),
    await sim(COVERAGE, SIM_SEEDS),
    await nodeTests('system', 'system-coverage', env),
    await nodeTests('interop', 'interop-coverage', env),
  ];
  return add(built, corpora, runs, await gate(COVERAGE));
}

export const stages = [
  { name: 'format', what: 'clang-format changes nothing',
    run: () => one('format', 'clang-format-14', ['--dry-run', '-Werror', ...sources()]) },
  { name: 'checks', what: 'layers, style, headers, no test forgotten; and that each check can fail',
    run: async () => add(
      await one('check-layers', 'tools/check-layers', []),
      await one('check-style', 'tools/check-style', []),
      await one('check-tests', 'tools/check-tests', []),
      await one('check-headers', 'tools/check-headers', []),
      await one('check-words', 'tools/check-words', []),
      await tap('check-twins', 'tools/check-twins', [])) },
  { name: 'build', what: 'gcc: the program as shipped, and with tests',
    run: async () => add(
      await build('build', ['--buildtype=release', '-Dtests=false']),
      await build(GCC, ['-Dexpensive_checks=true'])) },
  { name: 'symbols', what: 'the pure rooms have no clock, I/O, entropy or globals', needs: ['build'],
    run: () => one('check-symbols', 'tools/check-symbols', libraries(GCC)) },
  { name: 'unit', what: 'unit, property, corpus and manual page tests, gcc', needs: ['build'],
    run: () => mesonTests(GCC) },
  { name: 'asan', what: 'the same by clang with address and undefined behaviour sanitizers',
    run: async () => {
      const built = await build(ASAN, ['-Db_sanitize=address,undefined', ...SANITIZE], { cc: 'clang-14' });
      return built.failed ? built : add(built, await mesonTests(ASAN, [], SANITIZER_ENV));
    } },
  { name: 'tsan', what: 'what has threads under the thread sanitizer', run: threads },
  { name: 'sim', what: `${SIM_SEEDS} seeds of the simulator`, needs: ['build'],
    run: () => sim(GCC, SIM_SEEDS) },
  { name: 'fuzz', what: `each target for ${FUZZ_SECONDS} s`,
    run: async () => {
      const built = await build(FUZZ,
        ['-Db_sanitize=address,undefined', '-Dfuzz=true', ...SANITIZE],
        { cc: 'clang-14', targets: fuzzTargets().map(name => `test/fuzz/fuzz_${name}`).join(' ') });
      return built.failed ? built : add(built, await fuzz(FUZZ, FUZZ_SECONDS));
    } },
  { name: 'system', what: 'the program from outside', needs: ['build'],
    run: () => nodeTests('system', 'system', SHIPPED) },
  { name: 'interop', what: 'official SDKs and the conformance suite', needs: ['build'],
    run: () => nodeTests('interop', 'interop', SHIPPED) },
  { name: 'system-asan', what: 'the system tests with the program of the asan stage', needs: ['asan'],
    run: () => nodeTests('system', 'system-asan', program(ASAN)) },
  { name: 'coverage', what: 'corpora reach their parsers, the tests reach every file [P11]',
    run: coverage },
  { name: 'bench', what: 'the benchmark runs, short, without an error', needs: ['build'],
    run: () => one('bench', 'test/bench/run', ['--smoke']) },
];
