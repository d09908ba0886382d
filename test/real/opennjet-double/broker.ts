import type { LocationEntry, Message, ServerKey } from "./messages.js";

/** 20 messages in flight and 1,000 queued for each subscriber: what is beyond is dropped when a worker subscribes. */
export const MOST_REPLAYED = 1020;

/** The retained messages of the embedded MQTT broker: what survives a restart of OpenNJet. */
export class Broker {
  private retained = new Map<string, Message>();
  private saved = new Map<string, Message>();

  get size(): number {
    return this.retained.size;
  }

  /** Topics of the retained messages, as `/ins/loc/#` would deliver them. */
  topics(): string[] {
    return [...this.retained.keys()];
  }

  retain(message: Message): void {
    const topic = topicOf(message);
    const removes = message.about !== "config" && message.type === "del";
    if (!removes) this.retained.set(topic, message);
    else this.retained.delete(topic);
    if (removes && message.about === "server") this.dropLocations(message);
  }

  /** The locations of a server go with it. */
  private dropLocations({ addr_port, server_name }: ServerKey): void {
    for (const topic of this.topics()) {
      if (topic.startsWith(`/ins/loc/${addr_port} ${server_name} `)) this.retained.delete(topic);
    }
  }

  /** What a subscriber gets. */
  replay(): Message[] {
    return [...this.retained.values()].slice(0, MOST_REPLAYED);
  }

  /** On HUP, at the end, and every 1,800 s. */
  save(): void {
    this.saved = new Map(this.retained);
  }

  /** Comes back with what was saved. */
  restore(): void {
    this.retained = new Map(this.saved);
  }
}

function topicOf(message: Message): string {
  switch (message.about) {
    case "location": {
      const named: Pick<LocationEntry, "location_rule" | "location_name"> =
        message.type === "add" ? message.locations[0] : message;
      const { location_rule = "", location_name } = named;
      return `/ins/loc/${message.addr_port} ${message.server_name} ${location_rule} ${location_name}`;
    }
    case "server":
      return `/ins/srv/${message.addr_port} ${message.server_name}`;
    case "upstream":
      return `/ins/ups/${message.upstream_name}`;
    case "certificate":
      return `/ins/ssl/${message.listens.join(",")} ${message.serverNames.join(",")} ${message.cert_info.cert_type}`;
    case "config":
      return `/dyn/${message.module}`;
  }
}
