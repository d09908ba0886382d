import { STATUS_CODES } from "node:http";

/**
 * A page of the proxy itself. It shows the status and nothing from the request, so that it can't be used to show a
 * visitor somebody else's text.
 */
export function errorPage(status: number): string {
  const title = `${status} ${STATUS_CODES[status] ?? "Status"}`;
  return `<!DOCTYPE html>\n<html><head><title>${title}</title></head>\n<body><h1>${title}</h1></body></html>\n`;
}

export const ERROR_PAGE_TYPE = "text/html; charset=utf-8";

/** A whole raw answer for a connection whose request could not be parsed; the connection ends after it. */
export function rawAnswer(status: number): string {
  const body = errorPage(status);
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Status"}\r\nConnection: close\r\n` +
    `Content-Type: ${ERROR_PAGE_TYPE}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  );
}
