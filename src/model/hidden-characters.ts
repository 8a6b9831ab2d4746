// Characters that a text shows only as escapes: those that command a terminal or turn the direction of writing; and
// U+FFFD, which stands in a file for bytes that are no text, and is refused there unless it is an escape.
export const hiddenCharacters = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\ufffd]/u;
export const everyHiddenCharacter = new RegExp(hiddenCharacters, "gu");
