// Where a target may differ from the real API server, and why that is all right. A case that is
// listed here must fail on that target: a difference that is gone comes off the list.

/** Target name -> case name -> reason. */
export const acceptedDifferences: Readonly<Record<string, Readonly<Record<string, string>>>> = {};
