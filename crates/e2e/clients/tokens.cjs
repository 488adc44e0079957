// How many tokens of o200k each text of a JSON array has. The name of a special token in a text is text here.
const { encode } = require("gpt-tokenizer/encoding/o200k_base");

const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
const plain = { disallowedSpecial: new Set() };
console.log(JSON.stringify(texts.map((text) => encode(text, plain).length)));
