// The hub in a worker of its own, which lives for as long as any tab of the service is open.

import { Hub } from "./hub.js";

const hub = new Hub();
addEventListener("connect", (event) => hub.join(event.ports[0]));
