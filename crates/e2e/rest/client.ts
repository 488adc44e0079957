// A client made of nothing but the generated types: it must compile, and its wrong use must not.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

type Session = components["schemas"]["TerminalSession"];

export async function build(token: string): Promise<string> {
  const api = createClient<paths>({
    baseUrl: "http://127.0.0.1:7893",
    headers: { Authorization: `Bearer ${token}` },
  });
  const made = await api.POST("/terminals", { body: { name: "build", dimensions: { cols: 100, rows: 30 } } });
  if (made.error) throw new Error(made.error.code satisfies string);
  const session: Session = made.data;
  const at = { path: { sessionId: session.id } };
  const done = await api.POST("/terminals/{sessionId}/execute", { params: at, body: { command: "make" } });
  const code: number | undefined = done.data?.exitCode;
  const output = await api.GET("/terminals/{sessionId}/output", { params: { ...at, query: { view: "text" } } });
  // @ts-expect-error There is no such view.
  await api.GET("/terminals/{sessionId}/output", { params: { ...at, query: { view: "pdf" } } });
  // @ts-expect-error A command is needed.
  await api.POST("/terminals/{sessionId}/execute", { params: at, body: {} });
  // @ts-expect-error There is no such field.
  session.colour;
  // The same route also sends events, which are text.
  const text = typeof output.data === "object" ? output.data.text : output.data;
  return `${code} ${text}`;
}
