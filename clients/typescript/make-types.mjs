// Prints src/types.ts: the named types of the OpenAPI document. Their routes are in the client itself.
import { readFile } from "node:fs/promises";
import openapi, { astToString } from "openapi-typescript";

const document = JSON.parse(await readFile(new URL("../../schema/openapi.json", import.meta.url), "utf8"));
const named = { openapi: document.openapi, info: document.info, paths: {}, components: { schemas: document.components.schemas } };
const ast = await openapi(named, { rootTypes: true, rootTypesNoSchemaPrefix: true });
process.stdout.write(`// Made from schema/openapi.json by openapi-typescript: npm run types.\n\n${astToString(ast)}`);
