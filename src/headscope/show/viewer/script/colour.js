// From the paper through a hue to its strongest shade; orange and blue are told apart with any kind of colour vision.

const dark = matchMedia("(prefers-color-scheme: dark)");

export const whenTurned = (use) => dark.addEventListener("change", use);

function ramps(night) {
  const paper = night ? [21, 24, 29] : [255, 255, 255];
  const ramp = (day, evening) => [paper, ...(night ? evening : day)];
  return {
    similar: ramp([[245, 158, 66], [110, 40, 0]], [[200, 95, 20], [255, 222, 180]]),
    unlike: ramp([[110, 170, 225], [15, 60, 115]], [[50, 105, 170], [190, 220, 250]]),
    attend: ramp([[150, 130, 235], [36, 16, 92]], [[105, 80, 215], [228, 220, 255]]),
  };
}

function shade(ramp, strength) {
  const t = Math.min(Math.max(strength, 0), 1) * 2;
  const [from, to, part] = t < 1 ? [ramp[0], ramp[1], t] : [ramp[1], ramp[2], t - 1];
  return from.map((value, k) => Math.round(value + (to[k] - value) * part));
}

const STEPS = 256;
const made = new Map();

// Colours as whole pixels, ready for an image: from -1 to 1 of N, from 0 to 1 of square roots of weights.
function pixels(name) {
  const key = `${name} ${dark.matches}`;
  if (!made.has(key)) {
    const ramp = ramps(dark.matches)[name], bytes = new Uint8ClampedArray(4 * STEPS);
    for (let k = 0; k < STEPS; k++) bytes.set([...shade(ramp, k / (STEPS - 1)), 255], 4 * k);
    made.set(key, new Uint32Array(bytes.buffer));
  }
  return made.get(key);
}

const step = (strength) => (strength <= 0 ? 0 : strength >= 1 ? STEPS - 1 : (strength * (STEPS - 1) + 0.5) | 0);

export function colours(what) {
  if (what === "attention") {
    const attend = pixels("attend");
    return (value) => attend[step(Math.sqrt(value))];
  }
  const similar = pixels("similar"), unlike = pixels("unlike");
  return (value) => (value < 0 ? unlike[step(-value)] : similar[step(value)]);
}

export function css(what, value) {
  const name = what === "attention" ? "attend" : value < 0 ? "unlike" : "similar";
  const strength = what === "attention" ? Math.sqrt(value) : Math.abs(value);
  return `rgb(${shade(ramps(dark.matches)[name], strength).join(",")})`;
}

export const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
