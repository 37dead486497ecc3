// Cards that @a2a-js/sdk 1.3.0 signs, for the tests of package a2a: prints one line of JSON, {"keys": JWKS, "cards": {name: card}, "asks": {name: card}}.
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
// Cards that ask for a token, as JSON and as the SDK's own type: the signature of the first lacks a scheme without scopes, that of
// the second the schemes.
const { publicKey, privateKey } = await jose.generateKeyPair('EdDSA', { extractable: true });
keys.push({ ...(await jose.exportJWK(publicKey)), kid: 'asks', alg: 'EdDSA', use: 'sig' });
const asking = (list) => ({
  name: 'signed and asks', version: '1.0.0', supportedInterfaces: [{ url: 'https://agent.example/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  securitySchemes: { jwt: { httpAuthSecurityScheme: { scheme: 'bearer', bearerFormat: 'JWT' } } }, securityRequirements: [{ schemes: { jwt: { list } } }],
});
const sign = generateAgentCardSignature(privateKey, { alg: 'EdDSA', kid: 'asks', typ: 'JOSE' });
const asks = {
  'JSON, no scopes': await sign(asking([])), 'JSON, scopes': await sign(asking(['run'])),
  'typed, no scopes': AgentCard.toJSON(await sign(AgentCard.fromJSON(asking([])))), 'typed, scopes': AgentCard.toJSON(await sign(AgentCard.fromJSON(asking(['run'])))),
};
console.log(JSON.stringify({ keys: { keys }, cards, asks }));
