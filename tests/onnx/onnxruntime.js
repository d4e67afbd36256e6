// Runs models with onnxruntime: node onnxruntime.js CASES LEVEL
//
// CASES is a text of words: "model NAME FILE", then "input NAME TYPE RANK SIZES... VALUES..." for
// each input. Prints "case NAME" and "output NAME TYPE RANK SIZES... VALUES..." for each output, or
// "error NAME TEXT" in one line. LEVEL: of onnxruntime's optimiser, "all" or "disabled".
const fs = require('fs');
const ort = require('onnxruntime-node');

const arrays = {
  float32: Float32Array, float64: Float64Array, int32: Int32Array, int64: BigInt64Array,
  bool: Uint8Array,
};
const words = fs.readFileSync(process.argv[2], 'utf8').split(/\s+/).filter((word) => word);
const numbers = {nan: NaN, inf: Infinity, '-inf': -Infinity};
let next = 0;

function readTensor() {
  const type = words[next++];
  const rank = Number(words[next++]);
  const dims = words.slice(next, next += rank).map(Number);
  const count = dims.reduce((a, b) => a * b, 1);
  const values = words.slice(next, next += count);
  const number = (word) => word in numbers ? numbers[word] : Number(word);
  const data = values.map(type === 'int64' ? BigInt : number);
  return new ort.Tensor(type, arrays[type].from(data), dims);
}

function print(name, tensor) {
  const text = [...tensor.data].map((value) =>
      Number.isNaN(value) ? 'nan' : value === Infinity ? 'inf' : value === -Infinity ? '-inf' : value);
  console.log(['output', name, tensor.type, tensor.dims.length, ...tensor.dims].concat(text).join(' '));
}

async function main() {
  while (next < words.length) {
    next++;  // "model"
    const name = words[next++], file = words[next++], feeds = {};
    while (words[next] === 'input') {
      next++;
      const input = words[next++];
      feeds[input] = readTensor();
    }
    try {
      const session = await ort.InferenceSession.create(
          file, {
            intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3,
            graphOptimizationLevel: process.argv[3],
          });
      const outputs = await session.run(feeds);
      console.log('case', name);
      for (const output of session.outputNames) print(output, outputs[output]);
    } catch (error) {
      console.log('error', name, String(error.message).replace(/\s+/g, ' '));
    }
  }
}
main();
