/** Images that nobody would make on purpose, but one who means harm. */
import { repairChecksum } from "../support/checksum.js";
import type { Random } from "../support/random.js";

const S_SIZE = 16;
const NONE = 0xffffffff;

/** Writes a word of an image, if it is there. */
export function setWord(image: Uint8Array, offset: number, value: number): void {
  if (offset + 4 <= image.length) new DataView(image.buffer, image.byteOffset).setUint32(offset, value >>> 0, true);
}

/** Changes one to four bits, bytes or words; half of them in the header. */
function damage(random: Random, image: Uint8Array): void {
  for (let changes = 1 + random.below(4); changes > 0; changes--) {
    const at = 16 + random.below((random.onceIn(2) ? Math.min(96, image.length) : image.length) - 16);
    switch (random.below(4)) {
      case 0:
        image[at] ^= 1 << random.below(8);
        break;
      case 1:
        image[at] = random.word();
        break;
      case 2: {
        // A word that is near another value of its kind: offsets and counts go wrong by a little.
        const word = Math.min(at & ~3, (image.length & ~3) - 4);
        setWord(
          image,
          word,
          new DataView(image.buffer).getUint32(word, true) + random.pick([-40, -4, -1, 1, 4, 8, 40]),
        );
        break;
      }
      default:
        setWord(image, at & ~3, random.pick([0, 1, 4, 255, 65535, 65536, image.length, 0x7fffffff, 0xfffffffc, NONE]));
    }
  }
}

/** Image number `i`: by turns truncated, bit-flipped, random, spliced, and damaged with the checksum repaired. */
export function hostileImage(random: Random, samples: readonly Uint8Array[], i: number): Uint8Array {
  const sample = random.pick(samples);
  switch (i % 8) {
    case 0:
      return sample.slice(0, random.below(sample.length));
    case 1: {
      const image = sample.slice();
      for (let flips = 1 + random.below(8); flips > 0; flips--)
        image[random.below(image.length)] ^= 1 << random.below(8);
      return image;
    }
    case 2: {
      const image = Uint8Array.from({ length: random.below(400) }, () => random.word());
      // Half of them pass as images by their first words.
      if (random.onceIn(2)) image.set(sample.subarray(0, Math.min(8, image.length)));
      if (random.onceIn(2)) setWord(image, S_SIZE, image.length);
      if (random.onceIn(2)) repairChecksum(image);
      return image;
    }
    case 3: {
      const other = random.pick(samples);
      const head = random.below(sample.length);
      const image = new Uint8Array(head + other.length - Math.min(head, other.length));
      image.set(sample.subarray(0, head));
      image.set(other.subarray(Math.min(head, other.length)), head);
      if (random.onceIn(2)) setWord(image, S_SIZE, image.length);
      repairChecksum(image);
      return image;
    }
    case 4: {
      const image = sample.slice(0, random.below(sample.length));
      setWord(image, S_SIZE, image.length);
      repairChecksum(image);
      return image;
    }
    default: {
      const image = sample.slice();
      damage(random, image);
      repairChecksum(image);
      return image;
    }
  }
}

/** A host that the pattern of a valid image covers: exact, one label, any labels, or none of them. */
export function coveredHost(image: Uint8Array): string {
  const view = new DataView(image.buffer);
  const host = Buffer.from(image.subarray(96, 96 + view.getUint32(20, true))).toString("latin1");
  return [host, `x.${host}`, `x.y.${host}`][view.getUint32(24, true)] ?? "nobody.test";
}
