package registry

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"slices"
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
	Replaces  string    `json:"replaces,omitempty" doc:"The public key of the service whose agents this one took over."`
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
	return ServiceView{PublicKey: s.PublicKey, Name: s.Name, Bucket: s.Bucket, Default: s.Default, Replaces: s.Replaces, CreatedAt: s.CreatedAt}
}

func viewBucket(b flow.Bucket) BucketView {
	return BucketView{ID: b.ID, URL: b.URL, PublicBase: b.PublicBase, Default: b.Default, CreatedAt: b.CreatedAt}
}

// CreateBucket makes a bucket. It answers invalid for a place that is not
// open to buckets, and unavailable where nothing can be written.
func (r *Registry) CreateBucket(ctx context.Context, by flow.Caller, in *CreateBucketIn) (*BucketView, error) {
	if err := checkPublicBase(in.Body.PublicBase); err != nil {
		return nil, err
	}
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
	s, err := r.keep(ctx, by, private, flow.AgentService{Name: in.Body.Name, Bucket: b.ID, Default: in.Body.Default}, "services.create")
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

// keep seals a key and stores its service, of which the caller says the name,
// the bucket, whether it is the default and what it replaces.
func (r *Registry) keep(ctx context.Context, by flow.Caller, private ed25519.PrivateKey, s flow.AgentService, op string) (flow.AgentService, error) {
	s.PublicKey, s.Workspace, s.CreatedAt = hex.EncodeToString(private.Public().(ed25519.PublicKey)), by.Workspace, r.c.Clock.Now()
	var err error
	if s.Sealed, err = r.c.Sealer.Seal(by.Workspace, token.SealedName(s.PublicKey), private.Seed()); err != nil {
		return s, flow.Errorf(flow.CodeUnavailable, "the key cannot be sealed").Because(err)
	}
	there, err := r.c.Services.Services(ctx, by.Workspace)
	if err != nil {
		return s, err
	}
	s.Default = s.Default || len(there) == 0
	if s.Name == "" {
		s.Name = "service " + s.PublicKey[:8]
	}
	told := map[string]any{"name": s.Name, "bucket": s.Bucket, "default": s.Default}
	if s.Replaces != "" {
		told["instead"] = s.Replaces
	}
	return s, r.c.Services.CreateService(ctx, s, by.Did(op, "service/"+s.PublicKey, s.CreatedAt, told))
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
// that tokens that are about can be verified. A rotation that breaks off goes
// on, with the same new key, when it is asked for again. It answers conflict
// if the service was rotated and has no agents any more.
func (r *Registry) Rotate(ctx context.Context, by flow.Caller, in *RotateIn) (*RotateOut, error) {
	old, err := r.c.Services.Service(ctx, by.Workspace, in.Key)
	if err != nil {
		return nil, err
	}
	all, err := r.c.Agents.Agents(ctx, by.Workspace)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(a flow.Agent) bool { return a.Service != old.PublicKey })
	fresh, began, err := r.successor(ctx, by, old)
	if err != nil {
		return nil, err
	}
	if began && len(all) == 0 {
		return nil, flow.Errorf(flow.CodeConflict, "the Agent Service %s was rotated already: its agents are those of %s", old.PublicKey, fresh.PublicKey).At("key").Right("rotate that one")
	}
	out := &RotateOut{Service: viewService(fresh), Agents: []string{}}
	for _, a := range all {
		id := fresh.PublicKey + ":" + a.Manifest.Alias
		if err := r.move(ctx, by, old.Bucket, a.ID, id); err != nil {
			return nil, stopped(err, a.Manifest.Alias, len(out.Agents), len(all))
		}
		out.Agents = append(out.Agents, id)
	}
	return out, nil
}

// successor is the service that a rotation moves to: the one that was begun
// with, or a new one.
func (r *Registry) successor(ctx context.Context, by flow.Caller, old flow.AgentService) (s flow.AgentService, began bool, err error) {
	there, err := r.c.Services.Services(ctx, by.Workspace)
	if err != nil {
		return s, false, err
	}
	if i := slices.IndexFunc(there, func(s flow.AgentService) bool { return s.Replaces == old.PublicKey }); i >= 0 {
		return there[i], true, nil
	}
	private, err := newKey("")
	if err != nil {
		return s, false, err
	}
	s, err = r.keep(ctx, by, private, flow.AgentService{Name: old.Name, Bucket: old.Bucket, Default: old.Default, Replaces: old.PublicKey}, "services.rotate")
	return s, false, err
}

// stopped says how far a rotation came.
func stopped(err error, alias string, moved, of int) error {
	e := flow.Errorf(flow.CodeOf(err), "%d of %d agents were moved, then %s could not be: %v", moved, of, alias, err)
	return e.Right("mend that and rotate the same key again: the rest is moved to the same new key").Because(err)
}

// move pushes every version of an agent again under another id, in the place
// of its old manifests, and gives it the old one's connections.
func (r *Registry) move(ctx context.Context, by flow.Caller, bucketID, from, to string) error {
	versions, err := r.c.Agents.AgentVersions(ctx, by.Workspace, from)
	if flow.CodeOf(err) == flow.CodeNotFound { // somebody else moves them, too
		return nil
	}
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
	now := r.c.Clock.Now()
	did := by.Did("agents.move", "agent/"+to, now, map[string]any{"from": from})
	if err := r.c.Agents.MoveConnections(ctx, by.Workspace, from, to, now, did); err != nil {
		return err
	}
	if err := r.c.Agents.DeleteAgent(ctx, by.Workspace, from); flow.CodeOf(err) != flow.CodeNotFound {
		return err
	}
	return nil
}
