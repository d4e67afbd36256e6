// Times a model in onnxruntime, on one thread: node onnx_models.js MODEL [NAME TYPE SIZES VALUE]...
//
// SIZES: 1x512, or scalar. Prints milliseconds of each of 100 calls.
const ort = require('onnxruntime-node');

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
  for (let run = -10; run < 100; ++run) {
    const begin = process.hrtime.bigint();
    await session.run(feeds);
    if (run >= 0) console.log(Number(process.hrtime.bigint() - begin) / 1e6);
  }
}
main();
