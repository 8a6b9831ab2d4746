// What caches keep of a text that people can write into objects of their own: an annotation may have 256 KiB, an image or an
// argument more than a megabyte, and krane's memory must not grow with them (K10).

// Names in Kubernetes have at most 253 characters, and images are not much longer.
const charsMax = 1_024;

// No name, hash or image: it is equal to nothing that krane writes. A part of the text would keep all of it in memory.
const tooLong = "(too long)";

/** The text, unless it is too long to be one of krane's. */
export function keptText<S extends string | undefined>(text: S): S | typeof tooLong {
  return text !== undefined && text.length > charsMax ? tooLong : text;
}
