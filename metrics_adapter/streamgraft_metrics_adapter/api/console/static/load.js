// What a region's samples say of its load. Pure.

// Seconds. Samples come every ten; without Prometheus none do.
const FRESH = 30;

// The newest sample, unless it is too old to be called now.
export function newest(samples, now) {
  const last = samples.at(-1);
  return last && now - last.time <= FRESH ? last : null;
}

// Samples of which something is known, in unbroken runs: no line leads through a time of which nothing is.
export function runs(samples, known = (sample) => sample.inputRate !== null) {
  const found = [];
  let before = null;
  for (const sample of samples) {
    if (known(sample)) {
      if (before && sample.time - before.time <= FRESH) found.at(-1).push(sample);
      else found.push([sample]);
    }
    before = known(sample) ? sample : null;
  }
  return found;
}
