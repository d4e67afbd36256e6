// Times an LSTM in onnxruntime, on one thread: node onnx_bench.js MODEL STEPS
//
// Prints microseconds per step of each of 400 runs.
const ort = require('onnxruntime-node');

async function main() {
  const [model, steps] = [process.argv[2], Number(process.argv[3])];
  const session = await ort.InferenceSession.create(
      model, {intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3});
  const xs = new ort.Tensor('float32', new Float32Array(steps).fill(0.1), [1, steps, 1]);
  for (let run = -20; run < 400; ++run) {
    const begin = process.hrtime.bigint();
    await session.run({xs});
    const microseconds = Number(process.hrtime.bigint() - begin) / 1e3;
    if (run >= 0) console.log(microseconds / steps);
  }
}
main();
