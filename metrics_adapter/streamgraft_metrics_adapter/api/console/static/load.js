// What a region's samples say of its load, and how many channels that would take. Pure.

// Seconds. Samples come every ten; without Prometheus none do.
const FRESH = 30;

// The newest sample, unless it is too old to be called now.
export function newest(samples, now) {
  const last = samples.at(-1);
  return last && now - last.time <= FRESH ? last : null;
}

// Samples with a rate, in unbroken runs: no line leads through a time of which nothing is known.
export function runs(samples) {
  const found = [];
  let before = null;
  for (const sample of samples) {
    if (sample.inputRate !== null) {
      if (before && sample.time - before.time <= FRESH) found.at(-1).push(sample);
      else found.push([sample]);
    }
    before = sample.inputRate === null ? null : sample;
  }
  return found;
}

// Records/s of the region that one channel does, by the stage that is busy all the time first.
// A stage gets more or fewer records than the region; null while that or a capacity is not known.
export function channelRate(stages) {
  const arriving = stages["0"]?.load.input_rate;
  const rates = Object.entries(stages).map(([index, { load }]) => {
    const share = index === "0" ? 1 : load.input_rate / arriving;
    return share === 0 ? Infinity : load.capacity ? load.capacity.true_rate / share : NaN;
  });
  const least = Math.min(...rates);
  return least > 0 && least < Infinity ? least : null;
}

// Channels that a load needs if each is to be busy for a share of its time.
export const needed = (rate, channel, share, most) => Math.min(most, Math.max(1, Math.ceil(rate / (channel * share) - 1e-9)));

// Channels that the load would have needed on average, and had meanwhile; null if no rate is known.
export function averages(samples, guess) {
  const known = samples.filter((sample) => sample.inputRate !== null);
  const mean = (of) => known.reduce((sum, sample) => sum + of(sample), 0) / known.length;
  return known.length ? { asked: mean((sample) => guess(sample.inputRate)), had: mean((sample) => sample.width) } : null;
}
