// Characters that must be written as escapes: those that control a terminal or change the text direction, and U+FFFD,
// which replaces invalid bytes when a file is decoded, and is rejected in files unless escaped.
export const hiddenCharacters = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\ufffd]/u;
export const everyHiddenCharacter = new RegExp(hiddenCharacters, "gu");
