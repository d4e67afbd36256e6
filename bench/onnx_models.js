// Times calls of a model in onnxruntime, on one thread: node onnx_models.js MODEL [NAME TYPE SIZES VALUE]...
//
// SIZES: 1x512, or scalar. For each number n that it reads, a line, it prints the mean milliseconds
// of processors of n calls, after n / 4 + 1 that do not count.
const ort = require('onnxruntime-node');
const readline = require('readline');

const arrays = {
  float: ['float32', Float32Array], double: ['float64', Float64Array], int32: ['int32', Int32Array],
  int64: ['int64', BigInt64Array], bool: ['bool', Uint8Array],
};

async function main() {
  const session = await ort.InferenceSession.create(
      process.argv[2], {intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3});
  const feeds = {};
  for (let i = 3; i < process.argv.length; i += 4) {
    const [name, type, sizes, value] = process.argv.slice(i, i + 4);
    const dims = sizes === 'scalar' ? [] : sizes.split('x').map(Number);
    const [element, Array] = arrays[type];
    const data = new Array(dims.reduce((a, b) => a * b, 1));
    feeds[name] = new ort.Tensor(element, data.fill(type === 'int64' ? BigInt(value) : Number(value)), dims);
  }
  for (let run = 0; run < 10; ++run) await session.run(feeds);
  for await (const line of readline.createInterface({input: process.stdin})) {
    const calls = Number(line);
    for (let run = 0; run < 1 + Math.floor(calls / 4); ++run) await session.run(feeds);
    const begin = process.cpuUsage();
    for (let run = 0; run < calls; ++run) await session.run(feeds);
    const {user, system} = process.cpuUsage(begin);
    console.log((user + system) / 1e3 / calls);
  }
}
main();
