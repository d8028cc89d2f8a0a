// Two worker threads that compute and pass messages, beside the runtime's own.
const { Worker, isMainThread, parentPort } = require("worker_threads");

function work(seed) {
  let state = seed | 1;
  for (let i = 0; i < 4e6; i++) state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return state;
}

if (isMainThread) {
  const rounds = 12;
  let sum = 0;
  let left = 2;
  for (let k = 0; k < 2; k++) {
    const worker = new Worker(__filename);
    let round = 0;
    worker.on("message", (value) => {
      sum = (sum + value) | 0;
      if (++round < rounds) return worker.postMessage(k * rounds + round);
      worker.terminate();
      if (--left === 0) console.log(sum);
    });
    worker.postMessage(k * rounds);
  }
} else {
  parentPort.on("message", (seed) => parentPort.postMessage(work(seed)));
}
