package registry

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"time"

	"github.com/longstop-dev/longstop/internal/agent/token"
	"github.com/longstop-dev/longstop/internal/flow"
	"github.com/longstop-dev/longstop/internal/phrase"
)

// ServiceView is an Agent Service as every face shows it.
type ServiceView struct {
	PublicKey string    `json:"publicKey" doc:"Ed25519, 64 hexadecimal digits: --as-pubkey."`
	Name      string    `json:"name"`
	Bucket    string    `json:"bucket" doc:"The id of the bucket its manifests go to."`
	Default   bool      `json:"default"`
	CreatedAt time.Time `json:"createdAt"`
}

// BucketView is a bucket as every face shows it.
type BucketView struct {
	ID         string    `json:"id"`
	URL        string    `json:"url"`
	PublicBase string    `json:"publicBase,omitempty" doc:"Where others read it from; the server uses it for nothing."`
	Default    bool      `json:"default"`
	CreatedAt  time.Time `json:"createdAt"`
}

// CreateServiceIn makes an Agent Service.
type CreateServiceIn struct {
	Body struct {
		Name    string `json:"name,omitempty" maxLength:"100"`
		Phrase  string `json:"phrase,omitempty" minLength:"1" doc:"A BIP-39 phrase whose key is imported; a key is made without it."`
		Bucket  string `json:"bucket,omitempty" minLength:"1" doc:"A bucket's id; the workspace's default one, which is made if there is none, without it."`
		Default bool   `json:"default,omitempty" doc:"Whether it becomes the workspace's default; the first one does."`
	}
}

// RotateIn gives the agents of an Agent Service a new key.
type RotateIn struct {
	Key string `path:"key" doc:"The public key that is replaced."`
}

// RotateOut is the new Agent Service and what moved to it.
type RotateOut struct {
	Service ServiceView `json:"service"`
	Agents  []string    `json:"agents" doc:"The new ids of the agents that were pushed again."`
}

// CreateBucketIn makes a bucket.
type CreateBucketIn struct {
	Body struct {
		URL        string `json:"url,omitempty" minLength:"1" doc:"file:// for a folder of the server's own, which is the default; file:///DIR and s3://NAME/PREFIX?endpoint=&region= where the operator opened them."`
		PublicBase string `json:"publicBase,omitempty"`
		Default    bool   `json:"default,omitempty"`
	}
}

func viewService(s flow.AgentService) ServiceView {
	return ServiceView{PublicKey: s.PublicKey, Name: s.Name, Bucket: s.Bucket, Default: s.Default, CreatedAt: s.CreatedAt}
}

func viewBucket(b flow.Bucket) BucketView {
	return BucketView{ID: b.ID, URL: b.URL, PublicBase: b.PublicBase, Default: b.Default, CreatedAt: b.CreatedAt}
}

// CreateBucket makes a bucket. It answers invalid for a place that is not
// open to buckets, and unavailable where nothing can be written.
func (r *Registry) CreateBucket(ctx context.Context, by flow.Caller, in *CreateBucketIn) (*BucketView, error) {
	b := flow.Bucket{ID: r.c.NewID("bkt"), Workspace: by.Workspace, URL: in.Body.URL, PublicBase: in.Body.PublicBase, Default: in.Body.Default, CreatedAt: r.c.Clock.Now()}
	if b.URL == "" {
		b.URL = "file://"
	}
	there, err := r.c.Services.Buckets(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	b.Default = b.Default || len(there) == 0
	place, err := r.open(b)
	if err != nil {
		return nil, err
	}
	if _, err := place.List(ctx, "agents/"); err != nil { // whoever makes a bucket should hear now that it is not there
		return nil, err
	}
	did := by.Did("buckets.create", "bucket/"+b.ID, b.CreatedAt, map[string]any{"url": b.URL, "default": b.Default})
	if err := r.c.Services.PutBucket(ctx, b, did); err != nil {
		return nil, err
	}
	v := viewBucket(b)
	return &v, nil
}

// ListBuckets lists the workspace's buckets, oldest first.
func (r *Registry) ListBuckets(ctx context.Context, by flow.Caller, _ *None) (*List[BucketView], error) {
	all, err := r.c.Services.Buckets(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	out := &List[BucketView]{Items: []BucketView{}}
	for _, b := range all {
		out.Items = append(out.Items, viewBucket(b))
	}
	return out, nil
}

// ListServices lists the workspace's Agent Services, oldest first.
func (r *Registry) ListServices(ctx context.Context, by flow.Caller, _ *None) (*List[ServiceView], error) {
	all, err := r.c.Services.Services(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	out := &List[ServiceView]{Items: []ServiceView{}}
	for _, s := range all {
		out.Items = append(out.Items, viewService(s))
	}
	return out, nil
}

// CreateService makes an Agent Service, or imports the key of a phrase. It
// answers invalid for a phrase that is none, and conflict for a key that is
// held already.
func (r *Registry) CreateService(ctx context.Context, by flow.Caller, in *CreateServiceIn) (*ServiceView, error) {
	private, err := newKey(in.Body.Phrase)
	if err != nil {
		return nil, err
	}
	b, err := r.bucketFor(ctx, by, in.Body.Bucket)
	if err != nil {
		return nil, err
	}
	s, err := r.keep(ctx, by, private, in.Body.Name, b.ID, in.Body.Default, "services.create", nil)
	if err != nil {
		return nil, err
	}
	v := viewService(s)
	return &v, nil
}

func newKey(words string) (ed25519.PrivateKey, error) {
	if words == "" {
		_, private, err := ed25519.GenerateKey(nil)
		return private, err
	}
	private, err := phrase.Key(words)
	if err != nil {
		return nil, flow.Errorf(flow.CodeInvalid, "the phrase is not a BIP-39 phrase").At("phrase").Right("12, 15, 18, 21 or 24 words of the English list")
	}
	return private, nil
}

// keep seals a key and stores its service.
func (r *Registry) keep(ctx context.Context, by flow.Caller, private ed25519.PrivateKey, name, bucket string, def bool, op string, more map[string]any) (flow.AgentService, error) {
	key := hex.EncodeToString(private.Public().(ed25519.PublicKey))
	sealed, err := r.c.Sealer.Seal(by.Workspace, token.SealedName(key), private.Seed())
	if err != nil {
		return flow.AgentService{}, flow.Errorf(flow.CodeUnavailable, "the key cannot be sealed").Because(err)
	}
	there, err := r.c.Services.Services(ctx, by.Workspace)
	if err != nil {
		return flow.AgentService{}, err
	}
	if name == "" {
		name = "service " + key[:8]
	}
	s := flow.AgentService{PublicKey: key, Workspace: by.Workspace, Name: name, Sealed: sealed, Bucket: bucket, Default: def || len(there) == 0, CreatedAt: r.c.Clock.Now()}
	told := map[string]any{"name": s.Name, "bucket": s.Bucket, "default": s.Default}
	for k, v := range more {
		told[k] = v
	}
	return s, r.c.Services.CreateService(ctx, s, by.Did(op, "service/"+key, s.CreatedAt, told))
}

// bucketFor finds the bucket with an id, or the default one, which is made if
// there is none.
func (r *Registry) bucketFor(ctx context.Context, by flow.Caller, id string) (flow.Bucket, error) {
	if id != "" {
		return r.bucket(ctx, by, id)
	}
	all, err := r.c.Services.Buckets(ctx, by.Workspace)
	if err != nil {
		return flow.Bucket{}, err
	}
	for _, b := range all {
		if b.Default {
			return b, nil
		}
	}
	v, err := r.CreateBucket(ctx, by, &CreateBucketIn{})
	if err != nil {
		return flow.Bucket{}, err
	}
	return r.c.Services.Bucket(ctx, by.Workspace, v.ID)
}

func (r *Registry) bucket(ctx context.Context, by flow.Caller, id string) (flow.Bucket, error) {
	b, err := r.c.Services.Bucket(ctx, by.Workspace, id)
	if flow.CodeOf(err) == flow.CodeNotFound {
		return b, flow.Errorf(flow.CodeInvalid, "there is no bucket %q in this workspace", id).At("bucket").Right("an id that buckets list prints; services create makes a bucket, too")
	}
	return b, err
}

// Rotate makes a new Agent Service beside one, pushes its agents again under
// the new key and moves their connections. The old key stays published, so
// that tokens that are about can be verified.
func (r *Registry) Rotate(ctx context.Context, by flow.Caller, in *RotateIn) (*RotateOut, error) {
	old, err := r.c.Services.Service(ctx, by.Workspace, in.Key)
	if err != nil {
		return nil, err
	}
	all, err := r.c.Agents.Agents(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	private, err := newKey("")
	if err != nil {
		return nil, err
	}
	fresh, err := r.keep(ctx, by, private, old.Name, old.Bucket, old.Default, "services.rotate", map[string]any{"instead": old.PublicKey})
	if err != nil {
		return nil, err
	}
	out := &RotateOut{Service: viewService(fresh), Agents: []string{}}
	for _, a := range all {
		if a.Service != old.PublicKey {
			continue
		}
		id := fresh.PublicKey + ":" + a.Manifest.Alias
		if err := r.move(ctx, by, old.Bucket, a.ID, id); err != nil {
			return nil, err
		}
		out.Agents = append(out.Agents, id)
	}
	return out, nil
}

// move pushes every version of an agent again under another id, in the place
// of its old manifests, and gives it the old one's connections.
func (r *Registry) move(ctx context.Context, by flow.Caller, bucketID, from, to string) error {
	versions, err := r.c.Agents.AgentVersions(ctx, by.Workspace, from)
	if err != nil {
		return err
	}
	for _, v := range versions {
		m := v.Manifest
		m.AgentID = to
		if err := r.put(ctx, by, bucketID, m, from); err != nil {
			return err
		}
	}
	did := by.Did("agents.move", "agent/"+to, r.c.Clock.Now(), map[string]any{"from": from})
	if err := r.c.Agents.MoveConnections(ctx, by.Workspace, from, to, did); err != nil {
		return err
	}
	return r.c.Agents.DeleteAgent(ctx, by.Workspace, from)
}
