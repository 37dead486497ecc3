// Cards that @a2a-js/sdk 1.3.0 signs, for the tests of package a2a: prints one line of JSON, {"keys": JWKS, "cards": {name: card}}.
import * as jose from 'jose';
import { AgentCard, generateAgentCardSignature } from '@a2a-js/sdk';

const keys = [];
const cards = {};
for (const alg of ['ES256', 'RS256', 'EdDSA']) {
  const { publicKey, privateKey } = await jose.generateKeyPair(alg, { extractable: true });
  const kid = `key-${alg}`;
  keys.push({ ...(await jose.exportJWK(publicKey)), kid, alg, use: 'sig' });
  const card = AgentCard.toJSON(AgentCard.fromJSON({
    name: `signed ${alg}`, description: '', version: '1.0.0',
    supportedInterfaces: [{ url: 'https://agent.example/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: false, pushNotifications: true, extensions: [{ uri: 'https://x.example', required: false }] },
    defaultInputModes: ['text/plain'], defaultOutputModes: [], skills: [{ id: 's', name: 'Skill é', description: 'd', tags: [] }],
    securitySchemes: {}, securityRequirements: [],
  }));
  const signed = await generateAgentCardSignature(privateKey, { alg, kid, typ: 'JOSE' })(AgentCard.fromJSON(card));
  const sent = AgentCard.toJSON(signed);
  cards[alg] = sent;
  cards[`${alg} blended`] = { ...sent, url: 'https://unsigned.example/rpc', protocolVersion: '0.3.0', preferredTransport: 'JSONRPC' };
}
console.log(JSON.stringify({ keys: { keys }, cards }));
