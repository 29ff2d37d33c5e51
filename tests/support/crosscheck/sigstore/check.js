// The notes and the tree of @sigstore/verify, asked on standard input: a question in JSON on each line, and an
// answer on each line. It shares nothing with the ledger.
"use strict";

const { createPublicKey } = require("node:crypto");
const { createInterface } = require("node:readline");
const { VerificationError } = require("@sigstore/verify");
const { verifyCheckpoint } = require("@sigstore/verify/dist/tlog/checkpoint");
const { verifyMerkleInclusion } = require("@sigstore/verify/dist/tlog/merkle");

const bytes = (text) => Buffer.from(text, "base64");

const read = new Map();

function publicKey(text) {
  if (!read.has(text)) {
    read.set(text, createPublicKey({ key: bytes(text), format: "der", type: "spki" }));
  }
  return read.get(text);
}

// Keys: [{Name, Hint, Key}], of which Key is a SubjectPublicKeyInfo.
function authorities(keys) {
  return keys.map(({ Name, Hint, Key }) => ({
    baseURL: Name,
    logID: bytes(Hint),
    publicKey: publicKey(Key),
    validFor: { start: new Date(0), end: new Date(8.64e15) },
  }));
}

function answer({ Note, Keys, N, Leaf, Proof }) {
  const inclusionProof = {
    checkpoint: { envelope: bytes(Note).toString("utf8") },
    logIndex: String(N ?? 0),
    hashes: (Proof ?? []).map(bytes),
  };
  const checkpoint = verifyCheckpoint({ inclusionProof }, authorities(Keys));
  if (Leaf !== undefined) {
    verifyMerkleInclusion({ inclusionProof, canonicalizedBody: bytes(Leaf) }, checkpoint);
  }
  return {
    OK: true,
    Origin: checkpoint.origin,
    Size: String(checkpoint.logSize),
    Root: checkpoint.logHash.toString("base64"),
  };
}

createInterface({ input: process.stdin, crlfDelay: Infinity }).on("line", (line) => {
  let said;
  try {
    said = answer(JSON.parse(line));
  } catch (error) {
    // A size that is no number is a SyntaxError of BigInt there.
    if (!(error instanceof VerificationError || error instanceof SyntaxError)) throw error;
    said = { OK: false, Error: error.message };
  }
  process.stdout.write(JSON.stringify(said) + "\n");
});
